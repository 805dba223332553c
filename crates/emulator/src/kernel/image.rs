//! Looks into a kernel image without booting it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};

/// Window of the compressor that kernels are built with: 2^27 bytes.
const WINDOW_LOG: u32 = 27;

/// The kernel proper, an ELF file, out of an image that unpacks itself when booting.
///
/// It boots quicker: the host unpacks once what an emulated processor would unpack each time.
///
/// # Errors
/// Says what about the file is not as expected.
///
/// # Source
/// `Documentation/arch/x86/boot.rst` of Linux: the fields `setup_sects`, `payload_offset` and
/// `payload_length`.
pub fn kernel(image: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::read(image).map_err(|error| format!("it cannot be read: {error}"))?;
    unpack(payload(&bytes).ok_or("it has no payload")?)
}

/// The type information (section `.BTF`) of an unpacked kernel.
///
/// # Errors
/// Says what about the kernel is not as expected.
pub fn types(kernel: &[u8]) -> Result<&[u8], String> {
    let elf = ElfFile64::<Endianness>::parse(kernel)
        .map_err(|error| format!("its payload is no kernel: {error}"))?;
    let section = elf
        .section_by_name(".BTF")
        .ok_or("it was built without type information")?;
    section
        .data()
        .map_err(|error| format!("its type information cannot be read: {error}"))
}

/// The compressed kernel proper.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |offset: usize| {
        let bytes = image.get(offset..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + word(0x248)?;
    image.get(start..start.checked_add(word(0x24c)?)?)
}

/// Only what Debian uses: no image of the suites in question was packed otherwise.
fn unpack(payload: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error| format!("its payload cannot be unpacked as zstd: {error}");
    let mut decoder = zstd::Decoder::with_buffer(payload)
        .map_err(failed)?
        .single_frame();
    decoder.window_log_max(WINDOW_LOG).map_err(failed)?;
    let mut kernel = Vec::new();
    decoder.read_to_end(&mut kernel).map_err(failed)?;
    Ok(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        let length = u32::try_from(payload.len()).unwrap();
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend([0; 16]);
        image.extend(payload);
        image
    }

    #[test]
    fn the_payload_is_found_and_unpacked() {
        let mut packed = zstd::encode_all(&b"a kernel"[..], 3).unwrap();
        // Its size follows, for the code that unpacks it when booting.
        packed.extend(8_u32.to_le_bytes());
        let image = image(&packed);
        assert_eq!(unpack(payload(&image).unwrap()).unwrap(), b"a kernel");
    }

    #[test]
    fn cut_and_foreign_files_are_refused() {
        let whole = image(&zstd::encode_all(&b"a kernel"[..], 3).unwrap());
        for length in [0, 0x1f0, 0x24d, whole.len() - 1] {
            assert_eq!(payload(&whole[..length]), None, "{length} bytes");
        }
        assert!(payload(&[0; 4096]).is_none());
        assert!(unpack(b"\x1f\x8b\x08").unwrap_err().contains("as zstd"));
        let path = std::env::current_exe().unwrap();
        assert_eq!(kernel(&path).unwrap_err(), "it has no payload");
    }

    #[test]
    fn a_program_without_types_is_no_kernel() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        let message = types(&program).unwrap_err();
        assert_eq!(message, "it was built without type information");
        assert!(
            types(b"text")
                .unwrap_err()
                .starts_with("its payload is no kernel")
        );
    }
}
