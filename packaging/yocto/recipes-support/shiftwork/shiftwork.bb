SUMMARY = "Real-time scheduling with processor affinities and guarantees"
DESCRIPTION = "Real-time tasks on multicore machines: analysed, simulated, and run through sched_ext. \
               The daemon reserves CPU time for threads of running programs."
HOMEPAGE = "@HOMEPAGE@"
BUGTRACKER = "@HOMEPAGE@/issues"
SECTION = "base"
LICENSE = "(MIT | Apache-2.0) & GPL-2.0-only & LGPL-2.1-or-later & (LGPL-3.0-or-later | GPL-2.0-or-later)"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=@MD5_MIT@ \
                    file://LICENSE-APACHE;md5=@MD5_APACHE@"

# The archive of the release: its command needs no library, its library glibc 2.17 or newer.
SRC_URI = "@HOMEPAGE@/releases/download/v${PV}/shiftwork-${PV}-${TARGET_ARCH}-linux.tar.gz;name=${TARGET_ARCH}"
SRC_URI[x86_64.sha256sum] = "@SHA256_X86_64@"
SRC_URI[aarch64.sha256sum] = "@SHA256_AARCH64@"
S = "${UNPACKDIR}/shiftwork-${PV}-${TARGET_ARCH}-linux"
# Releases before walnascar unpack there.
UNPACKDIR ??= "${WORKDIR}"

COMPATIBLE_HOST = "(x86_64|aarch64).*-linux"
COMPATIBLE_HOST:libc-musl = "null"

inherit systemd useradd

USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system shiftwork"

SYSTEMD_SERVICE:${PN} = "shiftwork.service"
# It takes the place of the kernel's scheduler: an image enables it on purpose.
SYSTEMD_AUTO_ENABLE = "disable"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/bin/shiftwork ${D}${bindir}/shiftwork
    install -D -m 0644 ${S}/etc/shiftwork/daemon.toml ${D}${sysconfdir}/shiftwork/daemon.toml
    install -D -m 0644 ${S}/lib/systemd/system/shiftwork.service ${D}${systemd_system_unitdir}/shiftwork.service
    install -D -m 0644 ${S}/include/shiftwork.h ${D}${includedir}/shiftwork.h
    install -D -m 0644 ${S}/lib/pkgconfig/shiftwork.pc ${D}${libdir}/pkgconfig/shiftwork.pc
    install -m 0644 ${S}/lib/libshiftwork.a ${S}/lib/libshiftwork.so.${PV} ${D}${libdir}
    ln -s libshiftwork.so.${PV} ${D}${libdir}/libshiftwork.so.0
    ln -s libshiftwork.so.0 ${D}${libdir}/libshiftwork.so
    # The archive is made for /usr/local.
    sed -i -e 's|/usr/local/bin|${bindir}|g' -e 's|/etc/shiftwork|${sysconfdir}/shiftwork|g' \
        ${D}${systemd_system_unitdir}/shiftwork.service
    sed -i -e 's|/usr/local/lib|${libdir}|g' -e 's|/usr/local|${prefix}|g' ${D}${libdir}/pkgconfig/shiftwork.pc
}

CONFFILES:${PN} = "${sysconfdir}/shiftwork/daemon.toml"
PACKAGES =+ "lib${BPN}"
FILES:lib${BPN} += "${libdir}/libshiftwork.so.*"
# Stripped before it was packed.
INSANE_SKIP:${PN} = "already-stripped"
INSANE_SKIP:lib${BPN} = "already-stripped ldflags"
