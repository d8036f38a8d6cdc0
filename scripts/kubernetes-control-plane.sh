#!/usr/bin/env bash
# Builds Kubernetes' own control plane once from the Go module proxy, with the etcd it stores into, and prints
# the folder: etcd, kube-apiserver, kube-scheduler and kube-controller-manager.
set -euo pipefail
version=1.34.1
etcd=3.6.4
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/kubernetes-1.34
staging="api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
    code-generator component-base component-helpers controller-manager cri-api cri-client csi-translation-lib
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy
    kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver"

missing() {
    echo "kubernetes-control-plane: $1" >&2
    exit 1
}

if [ ! -d "$folder/bin" ]; then
    command -v go >/dev/null || missing "there is no go on PATH to build it with."
    mkdir -p "$folder"
    work=$folder/build
    rm -rf "$work"
    mkdir "$work"
    {
        echo "module penstock.invalid/kubernetes"
        echo "go 1.24.0"
        echo "require ("
        echo "k8s.io/kubernetes v$version"
        echo "go.etcd.io/etcd/server/v3 v$etcd"
        echo ")"
        for module in $staging; do echo "replace k8s.io/$module => k8s.io/$module v0${version#1}"; done
    } >"$work/go.mod"
    echo "kubernetes-control-plane: building Kubernetes $version and etcd $etcd; this takes minutes ..." >&2
    name=k8s.io/component-base/version
    named="-s -w -X $name.gitVersion=v$version -X $name.gitMajor=1 -X $name.gitMinor=34"
    if ! (cd "$work" && CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "$named" -o "$work/bin/" \
        k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler \
        k8s.io/kubernetes/cmd/kube-controller-manager &&
        CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "-s -w" -o "$work/bin/etcd" \
            go.etcd.io/etcd/server/v3) >"$folder/log" 2>&1; then
        tail -n 5 "$folder/log" >&2
        missing "the build failed; $folder/log has all of it."
    fi
    mv "$work/bin" "$folder/bin"
    rm -rf "$work"
fi
echo "$folder/bin"
