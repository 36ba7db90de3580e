package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A small run: a NULL, a COMPOUND, a WRITE with a Read chunk (after an attempt that failed), a READ with a
// Write chunk, a call that is retransmitted after a reconnect, a callback, and RPCs that did not go over
// RDMA.
const clientTraceText = `# tracer: nop
#
# entries-in-buffer/entries-written: 30/30   #P:1
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
       mount.nfs-337     [000] .....    23.665448: rpc_stats_latency: task:00000001@00000000 xid=0xaa689d8c mountv3 MOUNT backlog=47460 rtt=19484 execute=67121 xprt_id=0
       mount.nfs-337     [000] .....    23.702136: xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=0
     kworker/0:0-9       [000] .....    23.739760: xprtrdma_inline_thresh: 192.0.2.2:50228 -> 192.0.2.1:20049 neg send/recv=4096/4096, calc send/recv=3780/3884
       mount.nfs-337     [000] .....    23.743647: xprtrdma_marshal: task:00000001@00000000 xid=0x00000001 hdr=28 xdr=40/0/0 pullup/inline
    kworker/0:1H-44      [000] .....    23.753706: xprtrdma_reply: task:00000001@00000000 xid=0x00000001 credits=64
       mount.nfs-337     [000] .....    23.754658: rpc_stats_latency: task:00000001@00000000 xid=0x00000001 nfsv4 NULL backlog=41842 rtt=9916 execute=52786 xprt_id=1
 192.0.2.1-manag [x-317  [000] .....    24.000000: xprtrdma_marshal: task:00000006@00000003 xid=0x00000002 hdr=28 xdr=176/0/0 pullup/inline
    kworker/0:1H-44      [000] .....    24.100000: xprtrdma_reply: task:00000006@00000003 xid=0x00000002 credits=64
           mkdir-353     [000] .....    24.191563: rpc_stats_latency: task:00000006@00000003 xid=0x00000002 nfsv4 LOOKUP backlog=195 rtt=4502 execute=4902 xprt_id=1
    kworker/u4:3-95      [000] .....    24.300000: xprtrdma_chunk_read: task:00000007@00000003 pos=176 4096@0x0000000300010000:0x00000011 (more)
    kworker/u4:3-95      [000] .....    24.400000: xprtrdma_chunk_read: task:00000007@00000003 pos=176 4096@0x0000000300010000:0x00000012 (more)
    kworker/u4:3-95      [000] .....    24.500000: xprtrdma_chunk_read: task:00000007@00000003 pos=176 905@0x0000000300020000:0x00000013 (last)
    kworker/u4:3-95      [000] .....    24.600000: xprtrdma_marshal: task:00000007@00000003 xid=0x00000003 hdr=76 xdr=176/5001/19 read list/inline
    kworker/0:1H-44      [000] .....    24.700000: xprtrdma_reply: task:00000007@00000003 xid=0x00000003 credits=64
    kworker/u4:3-95      [000] .....    24.800000: rpc_stats_latency: task:00000007@00000003 xid=0x00000003 nfsv4 WRITE backlog=195 rtt=4502 execute=4902 xprt_id=1
    kworker/0:1H-44      [000] .....    24.810000: xprtrdma_cb_call: peer=[192.0.2.1]:20049 xid=0x537095f9
    kworker/0:1H-44      [000] .....    24.820000: xprtrdma_cb_reply: peer=[192.0.2.1]:20049 xid=0x537095f9
             cat-353     [000] .....    24.900000: xprtrdma_chunk_write: task:00000008@00000003 8192@0x0000000400010000:0x00000021 (last)
             cat-353     [000] .....    25.000000: xprtrdma_marshal: task:00000008@00000003 xid=0x00000004 hdr=52 xdr=172/0/0 pullup/write list
    kworker/0:1H-44      [000] .....    25.100000: xprtrdma_reply: task:00000008@00000003 xid=0x00000004 credits=64
             cat-353     [000] .....    25.200000: rpc_stats_latency: task:00000008@00000003 xid=0x00000004 nfsv4 READ backlog=195 rtt=4502 execute=4902 xprt_id=1
             cat-353     [000] .....    25.300000: xprtrdma_chunk_reply: task:00000009@00000003 256@0x0000000500010000:0x00000031 (last)
             cat-353     [000] .....    25.400000: xprtrdma_marshal: task:00000009@00000003 xid=0x00000005 hdr=48 xdr=180/0/0 pullup/reply chunk
    kworker/u4:3-95      [000] .....    26.000000: xprtrdma_op_connect: peer=[192.0.2.1]:20049 delay=0
     kworker/0:0-9       [000] .....    26.100000: xprtrdma_inline_thresh: 192.0.2.2:50229 -> 192.0.2.1:20049 neg send/recv=4096/4096, calc send/recv=3780/3884
             cat-353     [000] .....    26.300000: xprtrdma_chunk_reply: task:00000009@00000003 256@0x0000000500010000:0x00000032 (last)
             cat-353     [000] .....    26.400000: xprtrdma_marshal: task:00000009@00000003 xid=0x00000005 hdr=48 xdr=180/0/0 pullup/reply chunk
    kworker/0:1H-44      [000] .....    26.500000: xprtrdma_reply: task:00000009@00000003 xid=0x00000005 credits=64
             cat-353     [000] .....    26.600000: rpc_stats_latency: task:00000009@00000003 xid=0x00000005 nfsv4 READDIR backlog=195 rtt=4502 execute=4902 xprt_id=1
`

const serverTraceText = `# tracer: nop
            nfsd-225     [000] .N...    24.048435: svcrdma_decode_rqst: cq.id=2 cid=143 xid=0x00000001 vers=1 credits=128 proc=RDMA_MSG hdrlen=28
            nfsd-225     [000] .....    24.049851: svc_process: addr=192.0.2.2 xid=0x00000001 service=nfsd vers=4 proc=NULL
            nfsd-225     [000] .....    24.050304: svc_stats_latency: xid=0x00000001 server=192.0.2.1:20049 client=192.0.2.2:0 proc=NULL execute-us=1438
            nfsd-225     [000] .N...    24.048435: svcrdma_decode_rqst: cq.id=2 cid=144 xid=0x00000002 vers=1 credits=128 proc=RDMA_MSG hdrlen=28
            nfsd-225     [000] .....    24.049851: svc_process: addr=192.0.2.2 xid=0x00000002 service=nfsd vers=4 proc=COMPOUND
            nfsd-225     [000] .....    25.134782: svcrdma_decode_rseg: cq.id=2 cid=145 segno=0 position=176 4096@0x0000000300010000:0x00000012
            nfsd-225     [000] .....    25.134782: svcrdma_decode_rseg: cq.id=2 cid=145 segno=1 position=176 905@0x0000000300020000:0x00000013
            nfsd-225     [000] .....    25.134833: svcrdma_decode_rqst: cq.id=2 cid=145 xid=0x00000003 vers=1 credits=128 proc=RDMA_MSG hdrlen=76
            nfsd-225     [000] .....    25.138031: svc_process: addr=192.0.2.2 xid=0x00000003 service=nfsd vers=4 proc=COMPOUND
            nfsd-225     [000] .....    25.200000: svcrdma_decode_rqst: cq.id=2 cid=146 xid=0x537095f9 vers=1 credits=16 proc=RDMA_MSG hdrlen=28
            nfsd-225     [000] .....    25.434782: svcrdma_decode_wseg: cq.id=2 cid=147 segno=0 8192@0x0000000400010000:0x00000021
            nfsd-225     [000] .....    25.434833: svcrdma_decode_rqst: cq.id=2 cid=147 xid=0x00000004 vers=1 credits=128 proc=RDMA_MSG hdrlen=52
            nfsd-225     [000] .....    25.438031: svc_process: addr=192.0.2.2 xid=0x00000004 service=nfsd vers=4 proc=COMPOUND
            nfsd-225     [000] .....    25.499254: svcrdma_encode_wseg: cq.id=1 cid=271 segno=0 5001@0x0000000400010000:0x00000021
            nfsd-225     [000] .....    26.434782: svcrdma_decode_wseg: cq.id=4 cid=147 segno=0 256@0x0000000500010000:0x00000032
            nfsd-225     [000] .....    26.434833: svcrdma_decode_rqst: cq.id=4 cid=147 xid=0x00000005 vers=1 credits=128 proc=RDMA_MSG hdrlen=48
            nfsd-225     [000] .....    26.438031: svc_process: addr=192.0.2.2 xid=0x00000005 service=nfsd vers=4 proc=COMPOUND
            nfsd-225     [000] .....    26.499254: svcrdma_encode_wseg: cq.id=1 cid=271 segno=0 200@0x0000000500010000:0x00000032
`

const mountstatsText = `device proc mounted on /proc with fstype proc
device 192.0.2.1:/export mounted on /mnt with fstype nfs4 statvers=1.1
	events:	10 744 0 12 7 26 866 50 0 9 0 19 9 6 41 1 4 29 0 2 13 0 0 0 0 0 0
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	rdma 0 0 2 0 0 6 5 0 6 0 3 1 2 8704 5201 0 0 0 0 0 0 0 0 44 71 0 0
	per-op statistics
	        NULL: 1 1 0 40 24 58 10 70 0
	        READ: 1 1 0 172 5080 3 124 129 0
	       WRITE: 1 1 0 5196 100 4 154 160 0
	      COMMIT: 0 0 0 0 0 0 0 0 0
	      LOOKUP: 1 1 0 176 80 2 44 48 1
	     READDIR: 1 1 0 180 200 2 44 48 0

`

const nfsdBefore = `rc 0 0 0
io 0 0
rpc 1 0 0 0 0
proc3 22 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
proc4 2 1 0
proc4ops 76 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
`

const nfsdAfter = `rc 0 0 5
io 5001 5001
rpc 6 0 0 0 0
proc3 22 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
proc4 2 2 4
proc4ops 76 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0 0 4 0 0 1 1 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
`

var fixtureFiles = map[string]string{
	"trace.client":      clientTraceText,
	"trace.server":      serverTraceText,
	"mountstats":        mountstatsText,
	"nfs.server.before": nfsdBefore,
	"nfs.server.after":  nfsdAfter,
	"scenario.env":      "# defaults\nDRIVER=siw  # rxe | siw\nSEC=sys VERS=4.0\n# --- run\nDRIVER=rxe VERS=4.1\nTRACE_EVENTS=\"a b\" SNAPLEN=262144\n",
	"md5sums.server":    "5d41402abc4b2a76b9719d911017c592  ./d/hello\nd41d8cd98f00b204e9800998ecf8427e  ./empty\n",
	"workload.log":      "++ 1795239193.0 md5sum /mnt/d/hello\n5d41402abc4b2a76b9719d911017c592  /mnt/d/hello\nnot a sum  /mnt/x\n++ 1795239193.5 truncate -s 5000 /mnt/d/small\n",
}

// fixture writes the small run as a directory and loads it.
func fixture(t testing.TB, change map[string]string) *Truth {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small.truth")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range fixtureFiles {
		if c, ok := change[name]; ok {
			content = c
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	truth, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

func frame(n uint64) *uint64 { return &n }

// transactions is what a decoder without faults makes of the small run.
func transactions() []*Transaction {
	minor := uint32(1)
	var list []*Transaction
	add := func(xid uint32, f func(*Transaction)) {
		tx := &Transaction{
			Schema: TransactionSchema, Time: time.Unix(1_700_000_000, int64(len(list))), XID: xid, Connection: 1,
			Fabric: "rocev2", Client: "192.0.2.2", Server: "192.0.2.1", ClientEndpoint: 17, ServerEndpoint: 18,
			Direction: "forward", Program: "nfs", Version: 4, Procedure: "COMPOUND", MinorVersion: &minor, Status: "NFS4_OK",
			CallFrame: frame(1), ReplyFrame: frame(2), CallType: "RDMA_MSG", ReplyType: "RDMA_MSG",
			CreditsRequested: 128, CreditsGranted: 64, State: "complete", Line: len(list) + 1,
			LatencyNS: map[string]int64{"call_transfer": 1, "argument_pull": 2, "server": 3, "result_push": 4, "reply_transfer": 5, "total": 15},
		}
		f(tx)
		list = append(list, tx)
	}
	ops := func(names ...string) []Operation {
		var out []Operation
		for _, n := range names {
			name, status, ok := strings.Cut(n, "=")
			if !ok {
				status = "NFS4_OK"
			}
			out = append(out, Operation{name, status})
		}
		return out
	}
	add(1, func(t *Transaction) {
		t.Procedure, t.Status, t.MinorVersion, t.CallBytes, t.ReplyBytes = "NULL", "", nil, 40, 24
	})
	add(2, func(t *Transaction) {
		t.Operations = ops("SEQUENCE", "PUTFH", "LOOKUP=NFS4ERR_NOENT")
		t.Status, t.CallBytes, t.ReplyBytes = "NFS4ERR_NOENT", 176, 80
	})
	add(3, func(t *Transaction) {
		t.Operations = ops("SEQUENCE", "PUTFH", "WRITE", "GETATTR")
		t.ReadChunks = []ReadChunk{{176, []SegmentJSON{{0x12, 4096, 0x300010000}, {0x13, 905, 0x300020000}}}}
		t.CallBytes, t.ReplyBytes, t.RDMAReadBytes = 5196, 100, 5001
	})
	add(0x537095f9, func(t *Transaction) {
		t.Direction, t.Client, t.Server, t.Program, t.Version = "backward", "192.0.2.1", "192.0.2.2", "nfs_cb", 1
	})
	add(4, func(t *Transaction) {
		t.Operations = ops("SEQUENCE", "PUTFH", "READ")
		t.WriteChunks = [][]SegmentJSON{{{0x21, 8192, 0x400010000}}}
		t.WrittenChunks = [][]SegmentJSON{{{0x21, 5001, 0x400010000}}}
		t.CallBytes, t.ReplyBytes, t.RDMAWriteBytes = 172, 5080, 5001
	})
	add(5, func(t *Transaction) {
		t.Connection = 2
		t.Operations = ops("SEQUENCE", "PUTFH", "READDIR")
		t.ReplyChunk = []SegmentJSON{{0x32, 256, 0x500010000}}
		t.WrittenReplyChunk = []SegmentJSON{{0x32, 200, 0x500010000}}
		t.CallBytes, t.ReplyBytes, t.RDMAWriteBytes, t.ReplyType = 180, 200, 200, "RDMA_NOMSG"
	})
	add(0xaa689d8c, func(t *Transaction) {
		t.Fabric, t.Program, t.Version, t.Procedure, t.Connection = "tcp", "mount", 3, "MNT", 3
	})
	return list
}
