################################################################################
#
# shiftwork
#
################################################################################

SHIFTWORK_VERSION = @VERSION@
SHIFTWORK_SITE = @HOMEPAGE@/releases/download/v$(SHIFTWORK_VERSION)
SHIFTWORK_SOURCE = shiftwork-$(SHIFTWORK_VERSION)-$(if $(BR2_aarch64),aarch64,x86_64)-linux.tar.gz
SHIFTWORK_LICENSE = MIT or Apache-2.0, GPL-2.0 (BPF programs), LGPL-2.1+ (glibc), LGPL-3.0+ or GPL-2.0+ (libelf)
SHIFTWORK_LICENSE_FILES = LICENSE-APACHE LICENSE-MIT THIRD-PARTY-LICENSES
SHIFTWORK_INSTALL_STAGING = $(BR2_TOOLCHAIN_USES_GLIBC)

# The archive is made for /usr/local.
define SHIFTWORK_PREFIX
	$(SED) 's|/usr/local|/usr|g' $(@D)/lib/systemd/system/shiftwork.service \
		$(@D)/lib/pkgconfig/shiftwork.pc
endef
SHIFTWORK_POST_PATCH_HOOKS += SHIFTWORK_PREFIX

ifeq ($(BR2_TOOLCHAIN_USES_GLIBC),y)
define SHIFTWORK_INSTALL_STAGING_CMDS
	$(INSTALL) -D -m 0644 $(@D)/include/shiftwork.h $(STAGING_DIR)/usr/include/shiftwork.h
	$(INSTALL) -D -m 0644 $(@D)/lib/pkgconfig/shiftwork.pc $(STAGING_DIR)/usr/lib/pkgconfig/shiftwork.pc
	cp -dpf $(@D)/lib/libshiftwork.* $(STAGING_DIR)/usr/lib
endef

define SHIFTWORK_INSTALL_LIBRARY
	mkdir -p $(TARGET_DIR)/usr/lib
	cp -dpf $(@D)/lib/libshiftwork.so* $(TARGET_DIR)/usr/lib
endef
endif

define SHIFTWORK_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/bin/shiftwork $(TARGET_DIR)/usr/bin/shiftwork
	$(INSTALL) -D -m 0644 $(@D)/etc/shiftwork/daemon.toml $(TARGET_DIR)/etc/shiftwork/daemon.toml
	$(SHIFTWORK_INSTALL_LIBRARY)
endef

define SHIFTWORK_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/lib/systemd/system/shiftwork.service \
		$(TARGET_DIR)/usr/lib/systemd/system/shiftwork.service
endef

define SHIFTWORK_INSTALL_INIT_SYSV
	$(INSTALL) -D -m 0755 $(SHIFTWORK_PKGDIR)/S60shiftwork $(TARGET_DIR)/etc/init.d/S60shiftwork
endef

# Its members may reserve CPU time.
define SHIFTWORK_USERS
	- -1 shiftwork -1 * - - - Users who may reserve CPU time
endef

$(eval $(generic-package))
