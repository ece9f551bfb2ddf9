#!/bin/sh
# Makes secrets/: passwords, a certificate authority, a certificate for the names given (localhost and sage are always in it) and
# the settings that use them. Refuses to overwrite. Containers run as users of their own, so the files are readable and the
# directory is not: keep it 700.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
    echo "secrets/ is there already; nothing was changed" >&2
    exit 1
fi
umask 077
draft=$(mktemp -d ./secrets.XXXXXX)
trap 'rm -rf "$draft"' EXIT

password() { openssl rand -hex 24; }

postgres=$(password)
minio=$(password)
redis=$(password)
user=sage-$(openssl rand -hex 4)
printf %s "$postgres" >"$draft/postgres_password"
printf %s "$user" >"$draft/minio_user"
printf %s "$minio" >"$draft/minio_password"
printf %s "$(password)" >"$draft/grafana_password"
printf 'requirepass %s\nsave ""\nappendonly no\ndir /data\n' "$redis" >"$draft/redis.conf"
sed -e "s/@POSTGRES_PASSWORD@/$postgres/" -e "s/@MINIO_USER@/$user/" -e "s/@MINIO_PASSWORD@/$minio/" \
    -e "s/@REDIS_PASSWORD@/$redis/" sage.yaml.template >"$draft/sage.yaml"

names="DNS:localhost,DNS:sage,IP:127.0.0.1"
for name in "$@"; do names="$names,DNS:$name"; done
curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
# shellcheck disable=SC2086
openssl req -x509 $curve -days 3650 -subj "/CN=Sage CA" -keyout "$draft/ca.key" -out "$draft/ca.pem" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
# shellcheck disable=SC2086
openssl req $curve -subj "/CN=sage" -keyout "$draft/server.key" -out "$draft/server.csr" 2>/dev/null
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$names" >"$draft/names"
openssl x509 -req -in "$draft/server.csr" -CA "$draft/ca.pem" -CAkey "$draft/ca.key" -CAcreateserial -days 825 \
    -extfile "$draft/names" -out "$draft/server.pem" 2>/dev/null
rm "$draft/server.csr" "$draft/names" "$draft/ca.srl"

chmod 644 "$draft"/*
chmod 600 "$draft/ca.key"
mv "$draft" secrets
trap - EXIT
echo "wrote secrets/; clients trust secrets/ca.pem; move secrets/ca.key to a safe place"
