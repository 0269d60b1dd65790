# Installation below prefix and DESTDIR. PROFCTL prints the completions: of a cross build, one that runs here.
INSTALL ?= install
PROFCTL ?= $(B)/profctl
.PHONY: install install-collect uninstall
EXAMPLES := schema/ci/profd-compare.sh schema/prometheus-alerts.yaml systemd/nginx.conf systemd/haproxy.cfg
UNITS := $(wildcard systemd/*.service systemd/*.socket systemd/*.timer)
MANUALS := daemon/profd.8 daemon/profd-container.7 daemon/profd-fleet.7 daemon/profd-protocols.7 daemon/relay/profd-relay.8 daemon/profd.conf.5 client/profctl.1 $(wildcard client/man/*.1) \
           client/libprofd.3 proto/profd-protocol.7
manual_path = $(mandir)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
define INSTALLED
$(sbindir)/profd $(sbindir)/profd-relay $(bindir)/profctl $(libdir)/libprofd.so $(libdir)/libprofd.so.$(PROTOCOL_ABI) \
$(libdir)/libprofd.so.$(PROTOCOL_ABI).$(VERSION) $(libdir)/libprofd.a $(libdir)/pkgconfig/libprofd.pc \
$(foreach f,.so .so.$(PROTOCOL_ABI) .so.$(PROTOCOL_ABI).$(VERSION) .a,$(libdir)/libprofd-collect$(f)) \
$(libdir)/pkgconfig/libprofd-collect.pc $(call manual_path,client/collect/profd-collect.7) \
$(includedir)/profd/profd.h $(includedir)/profd/proto/status.h $(addprefix $(unitdir)/,$(notdir $(UNITS))) \
$(sysusersdir)/profd.conf $(tmpfilesdir)/profd.conf $(foreach m,$(MANUALS),$(call manual_path,$(m))) \
$(docdir)/README.md $(docdir)/LICENSE $(addprefix $(docdir)/examples/,$(notdir $(EXAMPLES))) $(bashcompdir)/profctl $(zshcompdir)/_profctl $(fishcompdir)/profctl.fish
endef
package_config = sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|; s|@version@|$(VERSION)|'
install-collect: all
	$(INSTALL) -D -m 644 $(B)/libprofd-collect.so $(DESTDIR)$(libdir)/libprofd-collect.so.$(PROTOCOL_ABI).$(VERSION)
	ln -sf libprofd-collect.so.$(PROTOCOL_ABI).$(VERSION) $(DESTDIR)$(libdir)/libprofd-collect.so.$(PROTOCOL_ABI)
	ln -sf libprofd-collect.so.$(PROTOCOL_ABI) $(DESTDIR)$(libdir)/libprofd-collect.so
	$(INSTALL) -D -m 644 $(B)/libprofd-collect.a $(DESTDIR)$(libdir)/libprofd-collect.a
	$(INSTALL) -D -m 644 client/collect/profd-collect.7 $(DESTDIR)$(call manual_path,client/collect/profd-collect.7)
	$(INSTALL) -d $(DESTDIR)$(libdir)/pkgconfig
	$(package_config) client/collect/libprofd-collect.pc.in > $(DESTDIR)$(libdir)/pkgconfig/libprofd-collect.pc
install: all $(if $(COLLECT),install-collect)
	$(INSTALL) -d $(DESTDIR)$(sbindir)
	$(INSTALL) -m 755 $(B)/profd $(B)/profd-relay $(DESTDIR)$(sbindir)
	$(INSTALL) -D -m 755 $(B)/profctl $(DESTDIR)$(bindir)/profctl
	$(INSTALL) -D -m 644 $(B)/libprofd.so $(DESTDIR)$(libdir)/libprofd.so.$(PROTOCOL_ABI).$(VERSION)
	ln -sf libprofd.so.$(PROTOCOL_ABI).$(VERSION) $(DESTDIR)$(libdir)/libprofd.so.$(PROTOCOL_ABI)
	ln -sf libprofd.so.$(PROTOCOL_ABI) $(DESTDIR)$(libdir)/libprofd.so
	$(INSTALL) -D -m 644 $(B)/libprofd-static.a $(DESTDIR)$(libdir)/libprofd.a
	$(INSTALL) -D -m 644 client/profd.h $(DESTDIR)$(includedir)/profd/profd.h
	$(INSTALL) -D -m 644 proto/status.h $(DESTDIR)$(includedir)/profd/proto/status.h
	$(INSTALL) -d $(DESTDIR)$(libdir)/pkgconfig
	$(package_config) client/libprofd.pc.in > $(DESTDIR)$(libdir)/pkgconfig/libprofd.pc
	$(foreach m,$(MANUALS),$(INSTALL) -D -m 644 $(m) $(DESTDIR)$(call manual_path,$(m)) &&) true
	$(INSTALL) -d $(DESTDIR)$(unitdir)
	$(foreach u,$(UNITS),sed 's|/usr/sbin/profd|$(sbindir)/profd|; s|/usr/bin/profctl|$(bindir)/profctl|' $(u) > $(DESTDIR)$(unitdir)/$(notdir $(u)) &&) true
	$(INSTALL) -D -m 644 systemd/profd.sysusers $(DESTDIR)$(sysusersdir)/profd.conf
	$(INSTALL) -D -m 644 systemd/profd.tmpfiles $(DESTDIR)$(tmpfilesdir)/profd.conf
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(docdir) README.md LICENSE
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(docdir)/examples $(EXAMPLES)
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bashcompdir) $(zshcompdir) $(fishcompdir))
	$(PROFCTL) completion bash > $(DESTDIR)$(bashcompdir)/profctl
	$(PROFCTL) completion zsh > $(DESTDIR)$(zshcompdir)/_profctl
	$(PROFCTL) completion fish > $(DESTDIR)$(fishcompdir)/profctl.fish
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))

# make image: OCI image layouts of the daemon and of a node's agent in build/image; profd-container(7).
# make kubernetes REGISTRY=registry.example/team: pushes them, and writes build/kubernetes for `kubectl apply -k`. SKOPEO_COPY has
# further options of skopeo copy, such as --dest-tls-verify=false.
.PHONY: image kubernetes
image:
	$(Q)sh tests/deps.sh image
	$(SUB) all
	$(Q)/usr/bin/python3 systemd/image.py $(B) build/image $(VERSION) profd profd-agent
kubernetes: $(if $(REGISTRY),image)
	$(if $(REGISTRY),,$(error make kubernetes needs the registry that the nodes pull from, as REGISTRY=registry.example/team))
	$(Q)for i in profd profd-agent; do \
	  skopeo copy $(SKOPEO_COPY) oci:build/image/$$i:$(VERSION) docker://$(REGISTRY)/$$i:$(VERSION) || exit; done
	$(Q)sh systemd/kubernetes/prepare.sh build/kubernetes $(VERSION) $(REGISTRY)
