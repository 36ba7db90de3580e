# The scenarios of test/vm/run (bash). Each leaves rows in $rundir/results:
# scenario, what was done, outcome, findings about us, seconds.

scenarios() {
    cat <<'X'
client_siw
client_rxe
server_siw
server_rxe
restart_siw
restart_rxe
rdma_siw
rdma_rxe
suite_siw
suite_rxe
replay_siw
replay_rxe
locks_siw
locks_rxe
krb5_siw
krb5_rxe
why_siw
why_rxe
trace_siw
trace_rxe
X
}

SRV=192.0.2.1 CLI=192.0.2.2

# row SCENARIO WHAT OUTCOME [FINDINGS]
row() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:-}" >>"$rundir/results"
    say "  $2: $3 ${4:-}"
}

# step SCENARIO WHAT ROLE COMMAND [SECONDS]: runs it, a row for it. Its output
# is in $out.
step() {
    local begun=$SECONDS rc
    out=$rundir/$1.$(tr -c 'a-zA-Z0-9.\n' _ <<<"$2").log
    on "$3" "$4" "${5:-200}" >"$out" 2>&1
    rc=$?
    if [ $rc = 0 ]; then
        row "$1" "$2" passed "$((SECONDS - begun)) s"
    else
        row "$1" "$2" "FAILED ($rc)" "$(tail -3 "$out" | tr '\n\t' '  ' | cut -c1-300)"
    fi
    return $rc
}

# captured SCENARIO WHAT ROLE ADDRESS...: ends the capture on a machine and
# holds it against the rules. The addresses are ours.
captured() {
    local s=$1 what=$2 role=$3 f dropped bad notes rules a
    shift 3
    f=$rundir/rig/out/$s.pcap
    dropped=$(on "$role" "capture_stop $s" 900) || { row "$s" "$what" "FAILED: no capture" "$dropped"; return 1; }
    "$rundir/bin/rpcrdma-dump" check --severity note -T ndjson $(key) "$f" >"$rundir/$s.check" 2>"$rundir/$s.check.err"
    if [ $? -gt 1 ]; then row "$s" "$what" "FAILED: check" "$(head -1 "$rundir/$s.check.err")"; return 1; fi
    : >"$rundir/$s.ours"
    for a in "$@"; do grep -F "\"by_address\":\"$a\"" "$rundir/$s.check" >>"$rundir/$s.ours"; done
    # how long something took says more about the machine than about us
    bad=$(grep -v -E '"rule":"(ack-late|message-stalled)"' "$rundir/$s.ours" | grep -c -E '"severity":"(error|warning)"')
    rules=$(grep -o '"rule":"[^"]*"' "$rundir/$s.ours" | sort | uniq -c | sed 's/^ *//; s/"rule"://; s/"//g' | tr '\n' ',' | sed 's/,$//; s/,/, /g')
    local n calls
    calls=$("$rundir/bin/rpcrdma-dump" "$f" 2>/dev/null | wc -l)
    n="$calls transactions, ${dropped%% *} packets dropped by the capture"
    if [ "$bad" != 0 ]; then row "$s" "$what" "FAILED: $bad findings" "$rules"; return 1; fi
    row "$s" "$what" "no error, no warning about us" "$n${rules:+; notes: $rules}"
}

# compare SCENARIO: what a client of ours says it wrote is in the server's file
# system.
compare() {
    sed -n 's/^md5 //p' "$rundir/$1".*client*.log >"$rundir/rig/sums"
    step "$1" "MD5 sums of $(wc -l <"$rundir/rig/sums") files in the server's file system" server "cd /export && md5sum --quiet -c /rig/sums"
}

# ours KERNEL-DEVICE PROVIDER: our client over a soft provider, the kernel's
# nfsd over its device.
ours() {
    local s=client_$1
    on client "device none" >/dev/null
    step $s "nfsd over $1" server "device $1 && nfsd_up" || return 1
    on server "capture $s" || return 1
    step $s "client NFSv3 over soft $2" client "peer nfs3 -provider $2 -seed \$RANDOM -addr $SRV:20049"
    step $s "client NFSv4.1 over soft $2" client "peer nfs4 -minor 1 -provider $2 -seed \$RANDOM -addr $SRV:20049"
    step $s "client NFSv4.2 over soft $2, provider by probe" client "peer nfs4 -minor 2 -provider auto -seed \$RANDOM -addr $SRV:20049"
    captured $s "check of the capture" server $CLI
    compare $s
    on server nfsd_down >/dev/null
}
run_client_siw() { ours siw iwarp; }
run_client_rxe() { ours rxe rocev2; }

# mounts SCENARIO VERSION...: the kernel's client on our server. $MOUNTED has what mounted (test/vm/guest)
# must know besides.
mounts() {
    local s=$1 v
    shift
    for v in "$@"; do
        step "$s" "NFSv$v: mount" client "client_up && mounted $v /mnt/v$v ${MOUNTED:-}" || continue
        step "$s" "NFSv$v: basic workload" client "bash /rig/guest/basic /mnt/v$v/basic$v $v" 300
        step "$s" "NFSv$v: fsx" client "peer fsx -seed \$RANDOM -ops ${FSX_OPS:-600} /mnt/v$v/fsx$v" 300
        if [ $cthon = yes ] && [[ " ${CTHON_VERSIONS-3 4.0 4.1 4.2} " = *" $v "* ]]; then
            step "$s" "NFSv$v: Connectathon" client "mkdir /mnt/v$v/cthon$v && cthon /mnt/v$v/cthon$v $v" 600
        fi
    done
    # What one version wrote, another reads.
    step "$s" "files of all versions read over the last" client "echo 3 >/proc/sys/vm/drop_caches; cd /mnt/v$v && for x in $*; do (cd basic\$x && md5sum --quiet -c ../basic\$x.md5) || exit 1; done"
    for v in "$@"; do step "$s" "NFSv$v: unmount" client "umount /mnt/v$v"; done
}

# serving KERNEL-DEVICE PROVIDER: our server over a soft provider, the kernel's
# client over its device. The capture is the client's.
serving() {
    local s=server_$1
    on server "device none; pkill rpcbind" >/dev/null
    step $s "kernel's client over $1" client "device $1 && client_up" || return 1
    step $s "server over soft $2" server "serve rpcrdma-replay serve --listen $SRV --provider $2,tcp --lease 30s --portmap-port 111" || return 1
    on client "capture $s" || return 1
    # shellcheck disable=SC2086 # words are meant
    MOUNTED='2049 / lock' mounts $s ${VERSIONS-3 4.0 4.1 4.2}
    captured $s "check of the capture" client $SRV
    step $s "server ends" server serve_stop
}
run_server_siw() { serving siw iwarp; }
run_server_rxe() { serving rxe rocev2; }

# restarts KERNEL-DEVICE PROVIDER: our server with a directory, killed and started again three
# times while the kernel's client works on it over four versions at once. Then delegations: files
# that one version reads are changed by another.
restarts() {
    local s=restart_$1 v i line
    local serve="serve rpcrdma-replay serve --listen $SRV --provider $2,tcp --dir /srv/$s --writable --state /srv/$s.state --lease 30s --portmap-port 111"
    on server "device none; pkill rpcbind; mkdir -p /srv/$s && chmod 1777 /srv/$s" >/dev/null
    step $s "kernel's client over $1" client "device $1 && client_up" || return 1
    step $s "server over soft $2" server "$serve" || return 1
    on client "capture $s" || return 1
    for v in 3 4.0 4.1 4.2; do
        step $s "NFSv$v: mount" client "mounted $v /mnt/v$v 2049 / lock" || return 1
    done
    on client 'rm -f /run/load.*; for v in 3 4.0 4.1 4.2; do bash /rig/guest/load /mnt/v$v/load$v $v >/run/load.$v 2>&1 & echo $! >/run/load.$v.pid; done; sleep 5'
    for i in 1 2 3; do
        step $s "kill -9, start $i" server "kill -9 \$(cat /run/serve.pid); sleep $((i - 1)); $serve" || return 1
        on client "sleep 45" >/dev/null
    done
    on client 'touch /run/load.stop'
    for v in 3 4.0 4.1 4.2; do
        step $s "NFSv$v: no error, all data, lock and open file kept" client \
            "for i in \$(seq 900); do kill -0 \$(cat /run/load.$v.pid) 2>/dev/null || break; sleep 0.1; done; cat /run/load.$v; grep -q ' 0 wrong\$' /run/load.$v" 120
        step $s "NFSv$v: MD5 sums in the server's directory" server "cd /srv/$s/load$v && md5sum --quiet -c ../load$v.md5"
    done
    step $s "delegations: read by 4.0, 4.1 and 4.2, changed by 3" client "delegated"
    for v in 3 4.0 4.1 4.2; do step $s "NFSv$v: unmount" client "umount /mnt/v$v"; done
    captured $s "check of the capture" client $SRV
    line=$("$rundir/bin/rpcrdma-dump" -Y 'operation == CB_RECALL && status == ok' "$rundir/rig/out/$s.pcap" 2>/dev/null | wc -l)
    [ "$line" -gt 0 ] && row $s "delegations recalled" "passed" "$line answered CB_RECALLs" || row $s "delegations recalled" "FAILED" "no CB_RECALL in the capture"
    step $s "server ends" server serve_stop
}
run_restart_siw() { restarts siw iwarp; }
run_restart_rxe() { restarts rxe rocev2; }

# device KERNEL-DEVICE PROVIDER: the provider over rdma-core, with the kernel,
# with itself, and with the soft provider of the same fabric.
core() {
    local s=rdma_$1
    step $s "devices" client "device $1 && peer-rdma probe" || return 1
    step $s "nfsd over $1" server "device $1 && nfsd_up" || return 1
    on server "capture $s" || return 1
    step $s "client NFSv3 over rdma-core, kernel's nfsd" client "peer-rdma nfs3 -provider rdma -seed \$RANDOM -addr $SRV:20049"
    step $s "client NFSv4.1 over rdma-core by probe, kernel's nfsd" client "peer-rdma nfs4 -provider auto -seed \$RANDOM -addr $SRV:20049"
    captured $s "check of the capture: rdma-core with nfsd" server $CLI
    compare $s
    on server nfsd_down >/dev/null

    step $s "server over rdma-core" server "serve peer-rdma serve -provider rdma -addr $SRV:20049" || return 1
    on client "capture $s" || return 1
    step $s "kernel's client: mount" client "client_up" && FSX_OPS=${FSX_OPS:-300} CTHON_VERSIONS= mounts $s 3 4.2
    captured $s "check of the capture: kernel's client with rdma-core" client $SRV
    on client "capture $s" || return 1
    step $s "rdma-core with itself: NFSv3" client "peer-rdma nfs3 -provider rdma -seed \$RANDOM -addr $SRV:20049"
    step $s "rdma-core with itself, registered for good: NFSv4.1" client "peer-rdma nfs4 -path / -registration persistent -provider rdma -seed \$RANDOM -addr $SRV:20049"
    if [ $1 = rxe ]; then
        step $s "rdma-core with itself, memory windows: NFSv3" client "peer-rdma nfs3 -registration windows -provider rdma -seed \$RANDOM -addr $SRV:20049"
    fi
    captured $s "check of the capture: rdma-core with itself" client $SRV $CLI
    on client "device none" >/dev/null
    on client "capture $s" || return 1
    step $s "soft $2 client, rdma-core server: NFSv3" client "peer nfs3 -provider $2 -seed \$RANDOM -addr $SRV:20049"
    step $s "soft $2 client, rdma-core server: NFSv4.1" client "peer nfs4 -path / -provider $2 -seed \$RANDOM -addr $SRV:20049"
    captured $s "check of the capture: soft $2 with rdma-core" client $SRV $CLI
    step $s "server ends" server serve_stop

    on server "device none" >/dev/null
    step $s "server over soft $2" server "serve peer serve -provider $2 -addr $SRV:20049" || return 1
    step $s "device" client "device $1" || return 1
    on client "capture $s" || return 1
    step $s "rdma-core client, soft $2 server: NFSv3" client "peer-rdma nfs3 -provider rdma -seed \$RANDOM -addr $SRV:20049"
    step $s "rdma-core client, soft $2 server: NFSv4.1" client "peer-rdma nfs4 -path / -provider rdma -seed \$RANDOM -addr $SRV:20049"
    captured $s "check of the capture: rdma-core with soft $2" client $SRV $CLI
    step $s "server ends" server serve_stop
}
run_rdma_siw() { core siw iwarp; }
run_rdma_rxe() { core rxe rocev2; }

# The conformance suite of providers, on one machine with itself.
suite() {
    step "suite_$1" "conformance suite over rdma-core with itself" server "device $1; cd /tmp && device.test -test.timeout 890s" 900
}
run_suite_siw() { suite siw; }
run_suite_rxe() { suite rxe; }

# workloads: the captures that are replayed, with the files that their servers had
# at the end: NAME CAPTURE SUMS. Those of RPCRDMA_VM_CAPTURES are replayed, too.
workloads() {
    local n f
    for n in ${REPLAY-rocev2-nfs3-basic iwarp-nfs40-basic rocev2-nfs41-restart rocev2-nfs41-mixed-load iwarp-nfs41-midstream rocev2-nfs42-basic}; do
        f=$(ls "samples/$n".pcap* 2>/dev/null) && echo "$n $f samples/$n.truth.json"
    done
    if [ -n "${RPCRDMA_VM_CAPTURES:-}" ]; then
        for n in ${REPLAY_MORE-iwarp-nfs3-basic rocev2-nfs40-basic rocev2-nfs41-basic iwarp-nfs41-basic iwarp-nfs41-mixed-load iwarp-nfs42-basic}; do
            f=$RPCRDMA_VM_CAPTURES/$n
            [ -e "$f.pcap" ] && echo "$n $f.pcap $f.truth/md5sums.server"
        done
    fi
}

# replayed SCENARIO NAME PROVIDER VERSION SUMS [DIR OPTIONS]: one of them, below /export/DIR.
replayed() {
    local s=$1 n=$2 provider=$3 version=$4 truth=$5 d=${6:-$2} begun=$SECONDS line rc
    local out=$rundir/$1.$d.log
    shift $(($# > 6 ? 6 : $#))
    rm -f "$rundir/rig/out/$d".*
    on client "replay $n $provider $version $d $*" 500 >"$out" 2>&1
    rc=$?
    if [ ! -e "$rundir/rig/out/$d.json" ]; then
        row "$s" "$d" "FAILED ($rc)" "$(tail -3 "$out" | tr '\n\t' '  ' | cut -c1-300)"
        return 1
    fi
    # the command has failed if there is a known fault, too
    if line=$("$rundir/bin/judge" report "$rundir/rig/out/$d.json" ${KNOWN:+"$KNOWN"} 2>>"$out") && { [ $rc = 0 ] || [[ $rc = 1 && $line = *"a known fault"* ]]; }; then
        row "$s" "$d" passed "$line; $((SECONDS - begun)) s"
    else
        row "$s" "$d" "FAILED ($rc)" "$line; $(tail -1 "$out")"
        "$rundir/bin/judge" rest "$rundir/rig/out/$d.json" >&2
    fi
    "$rundir/bin/judge" rest "$rundir/rig/out/$d.json" >"$rundir/$s.$d.rest" 2>&1
    mv "$rundir/rig/out/$d.json" "$rundir/$s.$d.json"
    "$rundir/rig/bin/rpcrdma-replay" plan "$rundir/rig/cap/$n" -o "$rundir/$n.plan" $(key) >>"$out" 2>&1 &&
        "$rundir/bin/judge" sums "$truth" "$rundir/$n.plan" >"$rundir/rig/out/$d.sums" 2>"$rundir/$n.parts" ||
        { row "$s" "$d: MD5 sums" FAILED "no list of them"; return 1; }
    local parts
    parts=$(wc -l <"$rundir/$n.parts")
    [ "$parts" = 0 ] && parts= || parts=" ($parts more are only in part in the capture)"
    step "$s" "$d: MD5 sums of $(wc -l <"$rundir/rig/out/$d.sums") files in the server's file system$parts" server "replayed $d"
}

# key: the option that decrypts captures of the realm.
key() { [ ! -e "$rundir/rig/server.keytab" ] || echo "--keytab $rundir/rig/server.keytab"; }

# recorded SCENARIO NAME WORKLOAD [PREPARE]: a capture of the kernel's client with the kernel's server, made
# here: the workload is done below /mnt/a, which stdin mounts; PREPARE makes it. Leaves $rundir/rig/cap/NAME, and
# $rundir/NAME.truth, the sums of the files that the server has then.
recorded() {
    local s=$1 n=$2 mount
    mount=$(cat)
    on server "${4:-prepared} /export/made-$n && capture $n" >/dev/null || { row $s "$n: capture" FAILED; return 1; }
    step $s "$n: mount" client "$mount" || return 1
    step $s "$n: workload, captured" client "$3" 300
    on client "umount -a -t nfs,nfs4" >/dev/null
    on server "capture_stop $n" >/dev/null && mv "$rundir/rig/out/$n.pcap" "$rundir/rig/cap/$n" &&
        on server "sync; cd /export/made-$n && find . -type f | LC_ALL=C sort | xargs -d '\\n' md5sum" >"$rundir/$n.truth" ||
        { row $s "$n: capture" FAILED; return 1; }
}

# replays KERNEL-DEVICE PROVIDER: captures of Linux with Linux, replayed by our
# client over a soft provider against the kernel's nfsd over its device.
replays() {
    local s=replay_$1 n file sums version fs last=ext4
    on client "device none" >/dev/null
    step $s "nfsd over $1" server "device $1 && nfsd_up ext4" || return 1
    on server "capture $s" || return 1
    mkdir -p "$rundir/rig/cap"
    while read -r n file sums <&3; do
        version=${n#*-nfs} version=${version%%-*} fs=ext4
        # these come from xfs, which has CLONE
        [ "$version" = 42 ] && fs=xfs
        if [ $fs != $last ]; then
            step $s "nfsd over $1 on $fs" server "nfsd_up $fs" || return 1
            last=$fs
        fi
        alive || return 1
        cp "$file" "$rundir/rig/cap/$n"
        replayed $s "$n" "$2" "$version" "$sums"
    done 3< <(workloads | LC_ALL=C sort -t- -k2)
    captured $s "check of the capture" server $CLI
    on server "nfsd_up ext4 && nfsd_down" >/dev/null
}
run_replay_siw() { replays siw iwarp; }
run_replay_rxe() { replays rxe rocev2; }

# locks KERNEL-DEVICE PROVIDER: locks that conflict, wait, and are kept over a restart of the
# server: captured with the kernel's client, and replayed by ours.
locks() {
    local s=locks_$1 v m n
    # with a delegation the client would keep locks to itself
    step $s "nfsd over $1, without delegations" server "device $1 && sysctl -qw fs.leases-enable=0 && nfsd_up ext4" || return 1
    step $s "kernel's client over $1" client "device $1 && client_up" || return 1
    mkdir -p "$rundir/rig/cap"
    for v in 3 4.0 4.1; do
        n=$1-nfs${v/./}-locks
        rm -f "$rundir"/rig/out/restart*
        on server restarter 240 >/dev/null &
        recorded $s $n 'python3 /rig/guest/locks /mnt/a /mnt/b restart' mkdir <<X
for m in a b; do mkdir -p /mnt/\$m; timeout 60 mount -t nfs -o vers=$v,proto=rdma,port=20049,retry=0,nosharecache$([ $v = 3 ] && echo ,mountproto=tcp) $SRV:/export/made-$n /mnt/\$m || exit 1; done
X
        wait $!
    done
    on client "device none" >/dev/null
    on server "capture $s" || return 1
    for v in 3 4.0 4.1; do
        n=$1-nfs${v/./}-locks
        [ -e "$rundir/$n.truth" ] && replayed $s $n $2 ${v/./} "$rundir/$n.truth"
    done
    captured $s "check of the capture" server $CLI
    on server "nfsd_down; sysctl -qw fs.leases-enable=1" >/dev/null
}
run_locks_siw() { locks siw iwarp; }
run_locks_rxe() { locks rxe rocev2; }

# kerberos KERNEL-DEVICE PROVIDER: captures of the kernel's client with krb5, krb5i and krb5p,
# replayed by ours with each, over RDMA and over TCP; then the kernel's client on our server.
kerberos() {
    local s=krb5_$1 v n sec of fabric
    step $s "KDC, nfsd over $1" server "device $1 && realm_server && nfsd_up ext4" 400 || return 1
    step $s "kernel's client over $1, gssd" client "device $1 && client_up && realm_client" || return 1
    mkdir -p "$rundir/rig/cap"
    for of in 3:krb5 4.0:krb5i 4.1:krb5p; do
        v=${of%:*} sec=${of#*:} n=$1-nfs${v/./}-$sec
        recorded $s $n 'bash /rig/guest/short /mnt/a' <<X
realm_mounted $v /export/made-$n /mnt/a $sec rdma
X
    done
    on client "device none" >/dev/null
    on server "capture $s" || return 1
    for of in 3:krb5 4.0:krb5i 4.1:krb5p; do
        v=${of%:*} n=$1-nfs${v/./}-${of#*:}
        [ -e "$rundir/$n.truth" ] || continue
        for fabric in $2 tcp; do
            for sec in krb5 krb5i krb5p; do
                # with krb5p, nfsd does not understand what follows a long WRITE of NFSv4
                KNOWN=$([ $v = 3 ] || echo NFS4ERR_OP_ILLEGAL) replayed $s $n $fabric ${v/./} "$rundir/$n.truth" $n-as-$sec-$fabric --sec $sec \
                    --client-keytab /rig/client.keytab --service nfs/server.rig.test --keytab /rig/server.keytab
            done
        done
    done
    captured $s "check of the capture: our client" server $CLI
    on server "nfsd_down; device none; pkill rpc.svcgssd; pkill rpcbind" >/dev/null

    step $s "device" client "device $1" || return 1
    step $s "server over soft $2 and TCP, with a keytab" server "serve rpcrdma-replay serve --listen $SRV --provider $2,tcp --keytab /rig/server.keytab --users /rig/guest/users --portmap-port 111" || return 1
    on client "capture $s" || return 1
    for v in 3 4.0 4.1 4.2; do
        for of in krb5:rdma krb5i:rdma krb5p:rdma krb5p:tcp; do
            sec=${of%:*} fabric=${of#*:}
            step $s "NFSv$v, $sec over $fabric: mount" client "realm_mounted $v / /mnt/k $sec $fabric mountport=2049" || continue
            step $s "NFSv$v, $sec over $fabric: workload" client "mkdir /mnt/k/$v-$of && (prepared /mnt/k/$v-$of/w) && bash /rig/guest/short /mnt/k/$v-$of/w && ! setpriv --reuid alice --clear-groups ls /mnt/k 2>/dev/null"
            step $s "NFSv$v, $sec over $fabric: unmount" client "umount /mnt/k"
        done
    done
    captured $s "check of the capture: our server" client $SRV
    step $s "server ends" server serve_stop
    grep -i -E 'context' "$out" >&2
}
run_krb5_siw() { kerberos siw iwarp; }
run_krb5_rxe() { kerberos rxe rocev2; }

# traced_calls SCENARIO NAME MOUNT-OPTIONS WORKLOAD [SERVER]: the kernel's client works below /mnt/t, while both machines take their events and the
# server its packets. The transactions of both are those of the packets.
traced_calls() {
    local s=$1 n=$2 line
    rm -f "$rundir"/rig/out/{restart,restarted,held,recalled}
    step $s "$n: events of the server, and packets" server "(prepared /export/made-$n) && capture $n && traced $n && {
        ${5:-true}
    }" || return 1
    step $s "$n: events of the client" client "traced $n" || return 1
    step $s "$n: workload" client "cd /; mount -t nfs -o vers=$3,proto=rdma,port=20049$([[ $3 = 3* ]] && echo ,mountproto=tcp) $SRV:/export/made-$n /mnt/t && { $4; } && umount /mnt/t" 400
    on client "traced_stop $n" >"$rundir/$n.client" && on server "tc qdisc del dev eth0 root 2>/dev/null; traced_stop $n && capture_stop $n" >"$rundir/$n.server" ||
        { row $s "$n: events" FAILED "no recording"; return 1; }
    if line=$(RPCRDMA_CAPTURES=$rundir/rig/out go test ./decode/traced -count=1 -v -run "TestCaptures/$n" 2>&1); then
        row $s "$n: transactions of client and server are those of the packets" passed "$(sed -n 's/.* trace: \(.* events\{0,1\} captured.*\) for lack.*/\1/p' "$rundir/$n.client" "$rundir/$n.server" | paste -sd\;); $(sed -n 's/.*: compared //p' <<<"$line" | paste -sd\;)"
    else
        row $s "$n: transactions of client and server are those of the packets" FAILED "$(head -4 <<<"$line" | tr '\n\t' '  ' | cut -c1-600)"
    fi
}

# events KERNEL-DEVICE: the kernels' own events, live on both machines, beside the packets of the same calls: the transactions are the
# same. Then events are lost, and counted; and a program that is killed leaves nothing behind.
events() {
    local s=trace_$1 v n line
    step $s "nfsd over $1" server "device $1 && nfsd_up ext4" || return 1
    step $s "kernel's client over $1" client "device $1 && client_up && mkdir -p /mnt/t" || return 1
    rm -rf "$rundir/rig/out"/*.truth
    for v in ${VERSIONS-3 4.0 4.1 4.2}; do
        traced_calls $s $1-nfs${v/./}-events $v 'bash /rig/guest/short /mnt/t'
    done
    traced_calls $s $1-nfs3-loss 3 'bash /rig/guest/short /mnt/t' 'tc qdisc add dev eth0 root netem loss 0.3%'
    traced_calls $s $1-nfs41-nconnect 4.1,nconnect=3 'bash /rig/guest/short /mnt/t'
    traced_calls $s $1-nfs41-recall 4.1 'recalled' 'recalls &'
    traced_calls $s $1-nfs42-restart 4.2 'touch /rig/out/restart; bash /rig/guest/short /mnt/t && until [ -e /rig/out/restarted ]; do ls -l /mnt/t; sleep 1; done' 'restarter &'
    # One reader stands still, with little room; what it lost is what the other one has more.
    step $s "events lost are counted" client "traced all -B 16384 && traced few -B 64 && kill -STOP \$(cat /run/few.trace.pid) &&
        mount -t nfs -o vers=3,proto=rdma,port=20049,mountproto=tcp $SRV:/export /mnt/t && for i in {1..300}; do [ -e /mnt/t/none\$i ]; done; umount /mnt/t
        kill -CONT \$(cat /run/few.trace.pid); traced_stop few; traced_stop all; cat /run/few.trace /run/all.trace | awk '/events captured/ {for (i = 2; i < NF; i++) if (\$(i + 1) ~ /^event/) {n[++k] = \$i} else if (\$(i + 1) == \"dropped\") lost[k] = \$i}
        END {print n[1], \"and\", lost[1], \"lost of\", n[2] \", lost\", lost[2]; exit !(lost[1] > 0 && lost[2] == 0 && n[1] + lost[1] == n[2])}'" 300
    # The same calls at each level, and those that a filter of the kernel lets through.
    rm -rf "$rundir/rig/out"/*.truth
    step $s "levels and a filter" client "grep -h . /sys/kernel/tracing/events/{nfs/nfs_xdr_status,nfs4/nfs4_xdr_status}/format >/rig/out/formats.client; traced full && traced calls --events calls && traced some -f 'slower 1us and program nfs and procedure GETATTR,ACCESS' &&
        for v in 3,mountproto=tcp 4.1; do mount -t nfs -o vers=\$v,proto=rdma,port=20049 $SRV:/export /mnt/t && for i in {1..20}; do [ -e /mnt/t/none\$i ]; done; touch /mnt/t/one && cat /mnt/t/one && umount /mnt/t; done; traced_stop some; traced_stop calls; traced_stop full; cat /run/some.trace" 300
    on server "grep -h . /sys/kernel/tracing/events/nfsd/nfsd_compound_status/format >/rig/out/formats.server" >/dev/null
    levels() { "$rundir/bin/rpcrdma-dump" -T fields -e xid -e client -e server -e procedure -e operation -e status -e kernel.round_trip_ns "${@:2}" "$rundir/rig/out/$1.truth/trace.client" | sort; }
    if line=$(diff <(levels full) <(levels calls)) && line=$(diff <(levels full -Y 'operation in {GETATTR, ACCESS} and program == nfs') <(levels some)); then
        row $s "levels tell the same calls" passed "$(levels full | wc -l) calls, $(levels some | wc -l) of them by the filter"
    else
        row $s "levels tell the same calls" FAILED "$(head -4 <<<"$line" | tr '\n\t' '  ' | cut -c1-600)"
    fi
    step $s "killed, it leaves nothing behind" client "before=\$(holds); traced killed && [ \$(holds) -gt \$before ] && kill -9 \$(cat /run/killed.trace.pid); sleep 1; echo \$before \$(holds); [ \$(holds) = \$before ]"
    on server nfsd_down >/dev/null
}
run_trace_siw() { events siw; }
run_trace_rxe() { events rxe; }

# slowed SCENARIO NAME CODES OPTIONS WORKLOAD [SERVER [CLIENT]]: the kernel's client works on the kernel's server while
# commands on either have made it slow; why has to say one of CODES of the server's capture.
slowed() {
    local s=$1 n=$1-$2 line what
    what="$2: $5"
    on client ". /rig/guest/causes; cause none; ${7:-true}" >/dev/null
    on server "${6:+. /rig/guest/causes; $6}" 200 >/dev/null || { row $s "$what" FAILED "the server could not be made slow"; return 1; }
    on server "capture $n" || return 1
    on client ". /rig/guest/causes; slow_mount $4 && $5; counted; umount /mnt; cause none" 200 >"$rundir/$n.log" 2>&1
    on server "capture_stop $n" >/dev/null || { row $s "$what" FAILED "no capture"; return 1; }
    "$rundir/bin/rpcrdma-dump" why -T json "$rundir/rig/out/$n.pcap" >"$rundir/$n.json" 2>"$rundir/$n.err"
    if line=$("$rundir/bin/judge" why "$rundir/$n.json" "$3" 2>&1); then
        row $s "$what" passed "${line//$'\n'/; } Kernel: $(tail -1 "$rundir/$n.log")"
    else
        row $s "$what" FAILED "${line//$'\n'/; } Kernel: $(tail -1 "$rundir/$n.log")"
    fi
}

# reasons KERNEL-DEVICE: known causes in the kernel's client and server, and between them.
reasons() {
    local s=why_$1
    step $s "nfsd over $1" server "device $1 && nfsd_up" || return 1
    step $s "kernel's client over $1" client "device $1 && client_up" || return 1
    slowed $s healthy none,one-at-a-time,server-time vers=4.2 serial "disk fast"
    slowed $s distance path-delay vers=4.2 serial "" "cause delay"
    # One loss may end a connection of rxe, which is an outage.
    slowed $s losses loss-recovery,outage vers=3,mountproto=tcp parallel "" "cause loss"
    slowed $s link link-full,congestion vers=4.1 writers "" "cause rate"
    slowed $s idle none,client-idle vers=4.1 patient
    slowed $s outage outage vers=4.1 interrupted "outage >/dev/null 2>&1 &"
    slowed $s disk server-time vers=4.2 serial "disk slow"
    slowed $s thread server-threads,server-time vers=4.1 parallel "disk slow; rpc.nfsd 1"
    slowed $s credits credits vers=3,mountproto=tcp parallel "disk slow" "sysctl -qw sunrpc.rdma_slot_table_entries=2"
    slowed $s slots session-slots vers=4.1 parallel "disk slow" "sysctl -qw sunrpc.rdma_slot_table_entries=128; echo 2 >/sys/module/nfs/parameters/max_session_slots"
    on client "echo 64 >/sys/module/nfs/parameters/max_session_slots; umount -a -t nfs,nfs4" >/dev/null
    on server "nfsd_down" >/dev/null
}
# Emulated processors make software adapters slow, too, so that why may call a slow server only possible.
run_why_siw() { reasons siw; }
run_why_rxe() { reasons rxe; }

# table FILE...: the results in Markdown.
table() {
    local s what outcome more
    echo "| scenario | what | outcome | |"
    echo "|---|---|---|---|"
    while IFS=$'\t' read -r s what outcome more; do
        printf '| %s | %s | %s | %s |\n' "$s" "$what" "$outcome" "${more//|/\\|}"
    done < <(cat "$@")
}

# write_results puts the table into the documentation.
write_results() {
    local doc=test/vm/results.md
    {
        sed '/^<!-- results -->$/q' $doc
        printf '\nLinux %s, %s, rdma-core %s, %s; %s.\n\n' "$kernel" "$(awk '/^siw built/{print "siw of " $4 " " $5}' "$dir/vm/versions.txt" | tr -d ,)" \
            "$(awk '/^rdma-core/{print $2}' "$dir/vm/versions.txt")" "$(go version | cut -d' ' -f3)" "$(git log -1 --format='commit %h of %cd' --date=short)"
        (cd "$dir/results" && table $(for s in $(scenarios); do [ -e "$s" ] && echo "$s"; done))
    } >"$rundir/doc" && cp "$rundir/doc" $doc
}
