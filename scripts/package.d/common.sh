# What the scripts of packaging share; sourced, in the repository's folder.
# shellcheck shell=bash

targets_file=scripts/package.d/targets.txt
# Everything that is fetched or made on the way.
work=target/package
tools=$work/tools
# Debian's compiler, with the libraries of other machines.
debian_rust=$work/rust

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "Cargo.toml's version is '$version', not three numbers."

# What every file of a package is dated.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
# Sorts in the same order everywhere.
export LC_ALL=C

all_targets() { awk '!/^#/ && NF { print $1 }' "$targets_file"; }

# read_target NAME: sets rust, glibc, deb and rpm
read_target() {
    # shellcheck disable=SC2034 # those who source this use them
    read -r _ rust glibc deb rpm < <(awk -v name="$1" '$1 == name' "$targets_file") ||
        fail "TARGETS names '$1', which is none of: $(all_targets | paste -sd ' ')."
}

# module_of NAME [FEATURE]: where build-target puts the module
module_of() { echo "$work/${2:-release}/$1/libslide.so"; }

# apt_of ARCHITECTURE FOLDER COMMAND...: apt-get for another architecture or for source, with a state of its
# own in FOLDER: this machine's is left alone. The mirrors are the machine's, and apt checks the signatures.
apt_of() {
    local architecture=$1 folder
    folder=$(realpath -m "$2")
    shift 2
    mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
    apt-get -q -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o Dir::State::Status=/dev/null -o APT::Architecture="$architecture" \
        -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none "$@"
}

# unpack FOLDER PACKAGE...: Debian packages, without installing them
unpack() {
    local folder=$1 package
    shift
    for package in "$@"; do
        dpkg-deb --extract "$package" "$folder"
    done
}
