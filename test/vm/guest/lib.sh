# What the commands in both virtual machines share (bash).
SRV=192.0.2.1 CLI=192.0.2.2
if [ "$ROLE" = server ]; then OWN=$SRV PEER=$CLI; else OWN=$CLI PEER=$SRV; fi
export SRV CLI OWN PEER
export PATH=/rig/bin:$PATH
. /rig/guest/realm

network() {
    modprobe virtio_net
    ip link set lo up
    sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null
    # so that captures show packets as they were on the wire
    ip link set eth0 up
    ethtool -K eth0 gro off gso off tso off 2>/dev/null
    ip addr add "$OWN/24" dev eth0
    printf '127.0.0.1 localhost\n%s server.rig.test server\n%s client.rig.test client\n' "$SRV" "$CLI" >/etc/hosts
}

# device NAME: the machine's RDMA device is rxe, siw or none.
device() {
    local have
    have=$(rdma link show 2>/dev/null | sed -n 's/^link \([a-z]*\)0\/.*/\1/p')
    [ "$have" = "$1" ] && return 0
    [ -n "$have" ] && rdma link del "${have}0"
    # rdma_rxe owns the port of RoCE as long as it is loaded
    modprobe -r rdma_rxe 2>/dev/null
    case $1 in
        none) return 0 ;;
        rxe) modprobe rdma_rxe ;;
        siw) modprobe siw ;;
    esac || return 1
    modprobe -a ib_uverbs rdma_cm rdma_ucm || return 1
    rdma link add "${1}0" type "$1" netdev eth0 || return 1
}

# capture NAME, capture_stop NAME: all that eth0 sees, to /rig/out/NAME.pcap
capture() {
    tcpdump -i eth0 -Z root -s 262144 -B 65536 --time-stamp-precision=nano \
        -w "/cap/$1.pcap" not arp >/dev/null 2>"/run/$1.tcpdump" &
    echo $! >"/run/$1.pid"
    local i
    for ((i = 0; i < 200; i++)); do
        grep -q 'listening on' "/run/$1.tcpdump" && return 0
        sleep 0.1
    done
    return 1
}
capture_stop() {
    local pid
    pid=$(cat "/run/$1.pid")
    sleep 1 # for the last frames
    kill -INT "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    cp "/cap/$1.pcap" "/rig/out/$1.pcap" && rm "/cap/$1.pcap"
    grep -E 'dropped' "/run/$1.tcpdump"
}

# nfsd_up [FS]: the kernel's server, exporting /export, with RDMA at 20049.
# With ext4 or xfs /export is made anew.
nfsd_up() {
    mkdir -p /run/rpc_pipefs /var/lib/nfs/{sm,sm.bak,v4recovery} /export
    modprobe -a sunrpc nfsd rpcrdma lockd || return 1
    mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
    mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
    local fs=${1:-ext4}
    if [ -n "$1" ] && mountpoint -q /export; then
        nfsd_down
        exportfs -ua
        # the server lets go of files a little later
        local i
        for ((i = 0; i < 50; i++)); do
            umount /export 2>/dev/null && break
            sleep 0.2
        done
        mountpoint -q /export && { umount /export; return 1; }
    fi
    if ! mountpoint -q /export; then
        case $fs in
            ext4) mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 /dev/vdb ;;
            xfs) mkfs.xfs -q -f /dev/vdb ;;
        esac && mount -t "$fs" /dev/vdb /export || return 1
    fi
    chmod 1777 /export
    echo 1048576 >/proc/fs/nfsd/max_block_size 2>/dev/null
    echo 10 >/proc/fs/nfsd/nfsv4leasetime 2>/dev/null
    echo 10 >/proc/fs/nfsd/nfsv4gracetime 2>/dev/null
    echo "/export *(rw,sync,no_subtree_check,no_root_squash,insecure,fsid=1,sec=$(cat /run/realm 2>/dev/null || echo sys))" >/etc/exports
    pidof rpcbind >/dev/null || rpcbind
    pidof rpc.statd >/dev/null || rpc.statd
    exportfs -r || return 1
    rpc.nfsd 8 || return 1
    pidof rpc.mountd >/dev/null || rpc.mountd -p 20048
    grep -q 20049 /proc/fs/nfsd/portlist || echo 'rdma 20049' >/proc/fs/nfsd/portlist || return 1
    # No delegations are given while lockd, too, waits for reclaims: 50 seconds.
    echo Y >/proc/fs/nfsd/v4_end_grace 2>/dev/null
    echo Y >/proc/fs/lockd/nlm_end_grace
}
nfsd_down() {
    rpc.nfsd 0
    kill "$(pidof rpc.mountd)" # our server serves MOUNT at its port
}

# client_up: what a mount needs.
client_up() {
    mkdir -p /run/rpc_pipefs /var/lib/nfs/{sm,sm.bak} /mnt
    modprobe -a sunrpc nfs nfsv3 nfsv4 rpcrdma || return 1
    mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
    pidof rpcbind >/dev/null || rpcbind
    pidof rpc.statd >/dev/null || rpc.statd
    return 0
}

# serve PROGRAM [options]: our server, in the background.
serve() {
    local i
    "$@" >/run/serve.log 2>&1 &
    echo $! >/run/serve.pid
    for ((i = 0; i < 100; i++)); do
        grep -q -E 'listening|Stop with' /run/serve.log && return 0
        kill -0 "$(cat /run/serve.pid)" 2>/dev/null || break
        sleep 0.1
    done
    cat /run/serve.log
    return 1
}
serve_stop() {
    local i pid
    pid=$(cat /run/serve.pid)
    kill -TERM "$pid"
    for ((i = 0; i < 100; i++)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    tail -40 /run/serve.log
    ! kill -0 "$pid" 2>/dev/null && ! grep -q -E '^(panic|fatal error)' /run/serve.log
}

# mounted VERSION DIR [MOUNT-PORT PATH LOCK]: mounts our server. LOCK is the option nolock or lock of
# NFSv3; locks need a server that answers at port 111.
mounted() {
    local path=$SRV:/ more=
    [ "$1" = 3 ] && path=$SRV:${4:-/export} more=,${5:-nolock},mountproto=tcp,mountport=${3:-20048}
    mkdir -p "$2"
    timeout 60 mount -t nfs -o "vers=$1,proto=rdma,port=20049,retry=0$more" "$path" "$2"
}

# delegated: files that are held open over one version, and changed over another one, are read
# anew after that. The client tries a change again after 5 s; without an answer to the recall it would
# wait for the lease, too.
delegated() {
    local v i d=/mnt/v3/shared took=$SECONDS
    mkdir $d || return 1
    for v in 4.0 4.1 4.2; do
        for i in 1 2 3 4 5; do
            echo "old $i" >$d/$v.$i
            [ "$(cat /mnt/v$v/shared/$v.$i)" = "old $i" ] || { echo "$v.$i: not what NFSv3 wrote"; return 1; }
            exec 7</mnt/v$v/shared/$v.$i
            echo "new $i" >$d/$v.$i || return 1
            exec 7>&-
            [ "$(cat /mnt/v$v/shared/$v.$i)" = "new $i" ] || { echo "$v.$i: old data after a recall"; return 1; }
        done
    done
    took=$((SECONDS - took))
    echo "15 files in $took s"
    [ $took -lt 150 ]
}

# cthon DIR VERSION: what there is of the Connectathon tests, in DIR.
cthon() {
    local group t rc=0 groups="basic special"
    grep -q " $(stat -c %m "$1") nfs .*nolock" /proc/mounts || groups+=" lock"
    for group in $groups; do
        if (
            case $group in
                basic) cd /rig/bin/cthon04/basic && NFSTESTDIR=$1/basic timeout 300 ./runtests -f ;;
                # these run where they lie
                special) cp -r /rig/bin/cthon04/special "$1/" && cd "$1/special" && timeout 300 ./runtests ;;
                lock)
                    # it is called by what its build makes of long files
                    mkdir "$1/lock" && for t in /rig/bin/cthon04/lock/tlock{,lfs,64}; do
                        [ ! -x $t ] || timeout 300 $t "$1/lock" || exit 1
                    done
                    ;;
            esac
        ) >"/tmp/cthon.$group" 2>&1; then
            echo "cthon $group: passed"
        else
            echo "cthon $group: FAILED"
            tail -12 "/tmp/cthon.$group"
            rc=1
        fi
    done
    return $rc
}

# prepared DIR: what the workloads of test/vm/guest/short and locks find, on the server.
prepared() {
    mkdir "$1" "$1/many" && cd "$1" || return 1
    seq -f 'file-%g' 60 | (cd many; xargs touch)
    local n
    for n in 3000 70001 300001; do head -c $n /dev/urandom >r$n; done
}

# nfsd_restart: the kernel's server stops and starts again, as after a crash: in an orderly end it
# would forget which clients of NFSv3 have locks. They are told, and what was held may be reclaimed for
# some seconds.
nfsd_restart() {
    rm -rf /run/sm && cp -a /var/lib/nfs/sm /run/sm || return 1
    rpc.nfsd 0
    sleep 2
    cp -a /run/sm/. /var/lib/nfs/sm/
    rpc.nfsd 8 || return 1
    echo 'rdma 20049' >/proc/fs/nfsd/portlist || return 1
    sm-notify -f -v "$SRV" || return 1
    sleep 12
    echo Y >/proc/fs/nfsd/v4_end_grace 2>/dev/null
    echo Y >/proc/fs/lockd/nlm_end_grace
}

# restarter: restarts the server as soon as a workload asks for it.
restarter() {
    local i
    for ((i = 0; i < 1800; i++)); do
        if [ -e /rig/out/restart ]; then
            nfsd_restart || return 1
            touch /rig/out/restarted
            return 0
        fi
        sleep 0.1
    done
    return 1
}

# recalled on the client holds files of /mnt/t open for reading, which recalls on the server changes meanwhile. A server needs some opens before
# it delegates.
recalled() {
    local i
    for i in 1 2 3; do cat /mnt/t/r3000 >/dev/null || return 1; done
    exec 7</mnt/t/r3000 8</mnt/t/r70001
    cat <&7 >/dev/null && cat <&8 >/dev/null
    touch /rig/out/held
    until [ -e /rig/out/recalled ]; do sleep 0.1; done
    exec 7>&- 8>&-
    [ "$(tail -c 4 /mnt/t/r3000)" = new ]
}
recalls() {
    local d
    until [ -e /rig/out/held ]; do sleep 0.1; done
    for d in /export/made-*recall*; do echo new >>$d/r3000; echo new >>$d/r70001; done
    touch /rig/out/recalled
}

# replay NAME PROVIDER VERSION DIR [OPTIONS]: replays /rig/cap/NAME below /export/DIR of the
# kernel's server, with our packets captured. Leaves /rig/out/DIR.json, .pcapng and .replay, what
# the command said.
replay() {
    local n=$1 provider=$2 version=$3 d=$4 mount= rc
    shift 4
    # the kernel has MOUNT on TCP only
    [ "$version" = 3 ] && mount="--mount $SRV:20048"
    rpcrdma-replay run "/rig/cap/$n" $SRV --dir "/export/$d" --provider "$provider" $mount --yes --write --force --timing fast \
        --capture "/cap/$d.pcapng" --self-check --report "/rig/out/$d.json" --quiet "$@" >"/rig/out/$d.replay" 2>&1
    rc=$?
    mv "/cap/$d.pcapng" /rig/out/
    cat "/rig/out/$d.replay"
    return $rc
}

# replayed DIR: the MD5 sums /rig/out/DIR.sums against the server's file system. What NFSv4 mounts
# below an export is a directory of the export also in a replay.
replayed() {
    cd "/export/$1" || return 1
    [ ! -d made-* ] || cd made-*
    md5sum --quiet -c "/rig/out/$1.sums"
}

# traced NAME [OPTIONS]: takes the kernel's own events to /cap/NAME.trace.pcapng. traced_stop NAME: ends that.
traced() {
    local n=$1 i
    shift
    rpcrdma-dump capture -i trace -w "/cap/$n.trace.pcapng" "$@" >"/run/$n.trace" 2>&1 &
    echo $! >"/run/$n.trace.pid"
    for ((i = 0; i < 300; i++)); do
        grep -q 'capturing on' "/run/$n.trace" && return 0
        kill -0 "$(cat "/run/$n.trace.pid")" || break
        sleep 0.1
    done
    cat "/run/$n.trace"
    return 1
}
traced_stop() {
    local pid
    pid=$(cat "/run/$1.trace.pid")
    kill -INT "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    mkdir -p "/rig/out/$1.truth"
    mv "/cap/$1.trace.pcapng" "/rig/out/$1.truth/trace.$ROLE"
    cat "/run/$1.trace"
}

# holds: how many users the modules have whose events are taken.
holds() { lsmod | awk '$1 == "sunrpc" || $1 == "rpcrdma" {n += $3} END {print n}'; }
