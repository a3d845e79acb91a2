# Sourced by newcomer and try-wheel: a temporary folder with an empty home, and steps that report how they went.
# The sourcing script sets `script`, its name, first. KEEP=1 keeps the folder.

python=${PYTHON:-python3}
folder=$(mktemp -d "${TMPDIR:-/tmp}/$script.XXXXXX")
mkdir "$folder/home" "$folder/tmp" "$folder/logs"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT

# Commands get pip's and uv's settings and the proxy, because they need an index, and nothing else of this machine.
settings=()
while IFS='=' read -r name value; do
    case $name in
    PIP_* | UV_* | http_proxy | https_proxy | no_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | SSL_CERT_* | REQUESTS_CA_BUNDLE)
        settings+=("$name=$value")
        ;;
    esac
done < <(env)
for name in .config/pip/pip.conf .pip/pip.conf .config/uv/uv.toml; do
    if [ -f "${HOME:-/nowhere}/$name" ]; then
        mkdir -p "$folder/home/$(dirname "$name")"
        cp "$HOME/$name" "$folder/home/$name"
    fi
done
# bare COMMAND…: run a command with PATH, the empty home and these settings alone.
bare() { env -i "PATH=$PATH" "HOME=$folder/home" "TMPDIR=$folder/tmp" ${settings[@]+"${settings[@]}"} "$@"; }

passed=()
failed=()
# take NAME COMMAND…: run a step with its output in a file, and show the end of the file if the step fails.
take() {
    local name=$1 log began=$SECONDS
    shift
    log="$folder/logs/${name//[^a-z0-9]/-}.log"
    echo "== $name"
    if ("$@") >"$log" 2>&1; then
        passed+=("$name")
        echo "   ok, $((SECONDS - began)) s"
    else
        failed+=("$name")
        echo "   FAILED after $((SECONDS - began)) s; the end of its output:"
        tail -n 25 "$log" | sed 's/^/   | /'
        return 1
    fi
}
# summarize: print how many steps passed and failed; the status is 0 if none failed.
summarize() {
    echo
    echo "$script: ${#passed[@]} ok (${passed[*]-}), ${#failed[@]} failed${failed[*]:+ (${failed[*]})}"
    [ -z "${KEEP:-}" ] || echo "  everything is in $folder"
    [ ${#failed[@]} -eq 0 ]
}
