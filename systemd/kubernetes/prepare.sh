#!/bin/sh
# prepare.sh OUT VERSION REGISTRY: writes the kustomizations OUT and OUT/examples, with what git does not have: the
# token of the agents, a certificate of the centre, nginx.conf, and the names of the images at REGISTRY. Run at the top
# level of the sources. Token and certificate that are there stay; replace tls.crt and tls.key by your own.
set -eu
out=${1:?usage: prepare.sh OUT VERSION REGISTRY} version=$2 registry=$3
host=profd-centre.profd.svc
umask 077
mkdir -p "$out/examples"
[ -e "$out/relay.token" ] || echo "profd_$(openssl rand -hex 32)" > "$out/relay.token"
[ -e "$out/tls.crt" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -subj "/CN=$host" -addext "subjectAltName=DNS:$host,DNS:localhost" \
    -keyout "$out/tls.key" -out "$out/tls.crt"
# Ports that an unprivileged user may open, files of the Secret, and the log of the container.
sed -E "s/listen (\[::\]:)?80;/listen \18080;/; s/listen (\[::\]:)?443 /listen \18443 /; s/profd\.example;/$host;/
s|/etc/ssl/private/profd\.example\.key|/etc/profd-tls/tls.key|; s|/etc/ssl/profd\.example\.crt|/etc/profd-tls/tls.crt|
s|/var/log/nginx/profd\.log profd .*;|/dev/stdout profd;|" systemd/nginx.conf > "$out/nginx.conf"
cp systemd/kubernetes/main.conf "$out/main.conf"
cp "$out/relay.token" "$out/tls.crt" "$out/tls.key" "$out/examples"
write() { # FOLDER RESOURCES NAMESPACE
    cat > "$1/kustomization.yaml" <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to="$1" "$2")]
images:
  - {name: profd, newName: $registry/profd, newTag: "$version"}
  - {name: profd-agent, newName: $registry/profd-agent, newTag: "$version"}
  - {name: nginx, newTag: "1.28"}
secretGenerator:
  - {name: profd-token, namespace: $3, files: [relay.token]}
  - {name: profd-tls, namespace: $3, type: kubernetes.io/tls, files: [tls.crt, tls.key]}
END
}
write "$out" systemd/kubernetes profd
echo "configMapGenerator:
  - {name: profd-nginx, namespace: profd, files: [main.conf, nginx.conf]}" >> "$out/kustomization.yaml"
write "$out/examples" systemd/kubernetes/examples till
echo "$out: kubectl apply -k $out"
