# Starting the virtual machines and talking to them, for test/vm/run (bash).
# dir is the work directory, rundir that of this run.

# boot: starts both machines and waits until they take commands.
boot() {
    local accel acc role sock i start=$SECONDS
    mkdir -p "$rundir"/rig/{ctl/server,ctl/client,out,bin}
    cp -r "$here/guest" "$rundir/rig/"
    accel=$(cat "$dir/vm/accel" 2>/dev/null || echo tcg)
    case ${RPCRDMA_VM_ACCEL:-$accel} in
        kvm) acc=(-accel kvm -cpu host) ;;
        *) acc=(-accel tcg,thread=multi -cpu max) ;;
    esac
    truncate -s 2048M "$rundir/data.img"
    sock=$(mktemp -u "${TMPDIR:-/tmp}/rpcrdma-vm.XXXXXX")
    pids=()
    for role in server client; do
        local mac=52:54:00:12:34:01 listen=on disk=(-drive "file=$rundir/data.img,format=raw,if=virtio,cache=unsafe")
        [ $role = client ] && mac=52:54:00:12:34:02 listen=off disk=()
        qemu-system-x86_64 "${acc[@]}" -M q35 -m 1400 -smp 1 -nodefaults -no-reboot -display none \
            -serial "file:$rundir/$role.console" -kernel "$dir/vm/vmlinuz" -initrd "$dir/vm/initrd.gz" \
            -append "console=ttyS0 panic=-1 no_timer_check mitigations=off nokaslr loglevel=4 rig.role=$role" \
            -drive "file=$dir/vm/root.img,format=raw,if=virtio,snapshot=on" "${disk[@]}" \
            -virtfs "local,path=$rundir/rig,mount_tag=rig,security_model=none,id=rig" \
            -netdev "stream,id=n0,server=$listen,addr.type=unix,addr.path=$sock" \
            -device "virtio-net-pci,netdev=n0,mac=$mac,romfile=" >"$rundir/$role.qemu" 2>&1 &
        pids+=($!)
        echo $! >"$rundir/$role.pid"
        # the client's side of the link needs the server's socket
        for ((i = 0; i < 100; i++)); do [ -S "$sock" ] && break; sleep 0.1; done
    done
    for role in server client; do
        until [ -e "$rundir/rig/ctl/$role/ready" ]; do
            alive || { last_words >&2; return 1; }
            [ $((SECONDS - start)) -lt 300 ] || { echo "vm: the machines did not start in 300 s" >&2; return 1; }
            sleep 0.2
        done
    done
    rm -f "$sock"
    kernel=$(cat "$rundir/rig/ctl/server/ready")
    say "two machines with Linux $kernel (${acc[1]%%,*}) after $((SECONDS - start)) s"
}

alive() {
    local role
    for role in server client; do kill -0 "$(cat "$rundir/$role.pid")" 2>/dev/null || return 1; done
}

# last_words: which machine has ended, and what its kernel said at the end: from the first line
# of a crash on, or the last lines.
last_words() {
    local role from
    for role in server client; do
        kill -0 "$(cat "$rundir/$role.pid")" 2>/dev/null && continue
        echo "vm: the $role's machine has ended; its kernel said:"
        from=$(grep -nm 1 -E 'Oops|BUG:|general protection|Kernel panic|kernel BUG' "$rundir/$role.console" | cut -d: -f1)
        if [ -n "$from" ]; then tail -n "+$from" "$rundir/$role.console" | head -n 60; else tail -n 5 "$rundir/$role.console"; fi
        cat "$rundir/$role.qemu"
    done
}

# halt: ends both machines.
halt() {
    local pid i left list=("${pids[@]:-}")
    # a shell of its own (test/vm/shell) knows them from files
    [ -n "${list[0]}" ] || mapfile -t list < <(cat "$rundir"/{server,client}.pid 2>/dev/null)
    touch "$rundir"/rig/ctl/{server,client}/stop 2>/dev/null
    for ((i = 0; i < 50; i++)); do
        left=0
        for pid in "${list[@]}"; do [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && left=1; done
        [ $left = 0 ] && break
        sleep 0.2
    done
    for pid in "${list[@]}"; do [ -n "$pid" ] && kill "$pid" 2>/dev/null; done
    rm -f "$rundir/data.img"
}

# start ROLE 'shell text': runs it in a machine; prints its number.
start() {
    local c=$rundir/rig/ctl/$1 n
    (
        flock 9
        n=$(($(cat "$c/count" 2>/dev/null || echo 0) + 1))
        printf '. /rig/guest/lib.sh\n%s\n' "$2" >"$c/$n.tmp"
        mv "$c/$n.tmp" "$c/$n.sh"
        echo $n >"$c/count"
        echo $n
    ) 9>"$c/lock"
}

# finish ROLE NUMBER [SECONDS]: waits for it, prints its output, returns its
# exit status; 124 when time is up or the machines are gone.
finish() {
    local c=$rundir/rig/ctl/$1 n=$2 until=$((SECONDS + ${3:-120}))
    until [ -e "$c/$n.rc" ]; do
        if ! alive; then
            cat "$c/$n.out" 2>/dev/null
            echo "vm: a machine has ended: $(last_words | sed -n 2p)" >&2
            return 124
        fi
        if [ $SECONDS -ge $until ]; then
            cat "$c/$n.out" 2>/dev/null
            echo "vm: no end after ${3:-120} s: $(sed -n 2p "$c/$n.sh")" >&2
            return 124
        fi
        sleep 0.1
    done
    cat "$c/$n.out"
    return "$(cat "$c/$n.rc")"
}

# on ROLE 'shell text' [SECONDS]
on() { finish "$1" "$(start "$1" "$2")" "${3:-120}"; }

say() { printf '%s vm: %s\n' "$(date +%T)" "$*" >&2; }

# headers: those of rdma-core, into the work directory.
headers() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    local tmp deb
    tmp=$(mktemp -d) || return 1
    (cd "$tmp" && apt-get -q -o APT::Sandbox::User=root download libibverbs-dev librdmacm-dev >/dev/null) || { rm -rf "$tmp"; return 1; }
    mkdir -p "$dir/headers"
    for deb in "$tmp"/*.deb; do dpkg-deb -x "$deb" "$dir/headers"; done
    rm -rf "$tmp"
}
