package ftrace

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// formats returns a kernel's formats by event name.
func formats(t testing.TB, name string) map[string]*Format {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*Format)
	for text := range strings.SplitSeq(strings.TrimPrefix(string(b), "name: "), "\nname: ") {
		event, _, _ := strings.Cut(text, "\n")
		f, err := NewFormat("name: " + text)
		if err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		all[event] = f
	}
	return all
}

// event lays the values of fields out as the kernel does.
func (f *Format) event(values map[string]any) []byte {
	var fixed [128]byte
	b := fixed[:]
	native.PutUint16(b, f.ID)
	native.PutUint32(b[4:], 4711)
	for name, v := range values {
		x := f.fields[name]
		switch v := v.(type) {
		case int:
			switch at := b[x.offset:]; x.size {
			case 1:
				at[0] = byte(v)
			case 4:
				native.PutUint32(at, uint32(v))
			case 8:
				native.PutUint64(at, uint64(v))
			}
		case string:
			if x.dynamic {
				native.PutUint32(b[x.offset:], uint32(len(b)|(len(v)+1)<<16))
				b = append(append(b, v...), 0)
				continue
			}
			copy(b[x.offset:], v)
		case netip.AddrPort:
			s := make([]byte, 28)
			binary.BigEndian.PutUint16(s[2:], v.Port())
			if native.PutUint16(s, familyIPv6); v.Addr().Is4() {
				native.PutUint16(s, familyIPv4)
				copy(s[4:], v.Addr().AsSlice())
			} else {
				copy(s[8:], v.Addr().AsSlice())
			}
			if x.dynamic {
				native.PutUint32(b[x.offset:], uint32(len(b)|len(s)<<16))
				b = append(b, s...)
				continue
			}
			copy(b[x.offset:], s)
		}
	}
	return b
}

func TestFormat(t *testing.T) {
	all := formats(t, "testdata/linux-6.12.formats")
	type values = map[string]any
	addr := netip.MustParseAddrPort
	segment := values{"task_id": 0x28, "client_id": 3, "pos": 176, "nents": 1, "nsegs": 2, "handle": 0xa08, "length": 131072, "offset": 0xd126803108b000}
	written := values{"cq_id": 4, "completion_id": 143, "segno": 1, "position": 7, "handle": 0x17a7, "length": 4264, "offset": 0x756617bc0835b0}
	callback := values{"addr": "192.0.2.1", "port": "20049", "xid": 0x537095f9, "status": -11}
	for name, c := range map[string]struct {
		values values
		want   string
	}{
		"xprtrdma_inline_thresh": {values{"srcaddr": addr("192.0.2.2:36825"), "dstaddr": addr("[fd00::1]:20049"), "inline_send": 4096, "inline_recv": 4095, "max_send": 3780, "max_recv": 3884}, "192.0.2.2:36825 -> [fd00::1]:20049 neg send/recv=4096/4095, calc send/recv=3780/3884"},
		"xprtrdma_chunk_read":    {segment, "task:00000028@00000003 pos=176 131072@0x00d126803108b000:0x00000a08 (more)"},
		"xprtrdma_chunk_write":   {segment, "task:00000028@00000003 131072@0x00d126803108b000:0x00000a08 (more)"},
		"xprtrdma_chunk_reply":   {values{"nents": 2, "nsegs": 2}, "task:00000000@00000000 0@0x0000000000000000:0x00000000 (last)"},
		"xprtrdma_marshal":       {values{"task_id": 0x30, "client_id": 3, "xid": 0xd9268031, "hdrlen": 76, "headlen": 176, "pagelen": 262144, "taillen": 16, "rtype": 4, "wtype": 9}, "task:00000030@00000003 xid=0xd9268031 hdr=76 xdr=176/262144/16 *read list/0x9"},
		"xprtrdma_reply":         {values{"task_id": 0x2e, "client_id": -1, "xid": 0xd7268031, "credits": 64}, "task:0000002e@ffffffff xid=0xd7268031 credits=64"},
		"xprtrdma_cb_call":       {callback, "peer=[192.0.2.1]:20049 xid=0x537095f9"},
		"xprtrdma_cb_reply":      {callback, "peer=[192.0.2.1]:20049 xid=0x537095f9"},
		"xprt_lookup_rqst":       {callback, "peer=[192.0.2.1]:20049 xid=0x537095f9 status=-11"},
		"rpc_stats_latency":      {values{"task_id": 1, "client_id": 2, "xid": 3, "version": 4, "progname": "nfs", "procname": "READ", "backlog": 5, "rtt": 1 << 40, "execute": 7, "xprt_id": 1}, "task:00000001@00000002 xid=0x00000003 nfsv4 READ backlog=5 rtt=1099511627776 execute=7 xprt_id=1"},
		"xprt_get_cong":          {values{"task_id": 1, "client_id": 2, "snd_task_id": -1, "cong": 256, "cwnd": 512, "wait": 1}, "task:00000001@00000002 snd_task:ffffffff cong=256 cwnd=512 (wait)"},
		"svcrdma_decode_rseg":    {written, "cq.id=4 cid=143 segno=1 position=7 4264@0x00756617bc0835b0:0x000017a7"},
		"svcrdma_decode_wseg":    {written, "cq.id=4 cid=143 segno=1 4264@0x00756617bc0835b0:0x000017a7"},
		"svcrdma_encode_wseg":    {written, "cq.id=4 cid=143 segno=1 4264@0x00756617bc0835b0:0x000017a7"},
		"svcrdma_decode_rqst":    {values{"cq_id": 2, "completion_id": -1, "xid": 0xa1f3f213, "vers": 1, "credits": 128, "proc": 1, "hdrlen": 28}, "cq.id=2 cid=-1 xid=0xa1f3f213 vers=1 credits=128 proc=RDMA_NOMSG hdrlen=28"},
		"svc_process":            {values{"addr": "fd00::2", "xid": 1, "service": "nfsd", "vers": 4, "procedure": "COMPOUND"}, "addr=fd00::2 xid=0x00000001 service=nfsd vers=4 proc=COMPOUND"},
		"svc_stats_latency":      {values{"xid": 1, "server": addr("[fd00::1]:20049"), "client": addr("192.0.2.2:7"), "procedure": "NULL", "execute": 1499}, "xid=0x00000001 server=[fd00::1]:20049 client=192.0.2.2:7 proc=NULL execute-us=1499"},
		"svc_xprt_dequeue":       {values{"server": addr("192.0.2.1:20049"), "client": addr("192.0.2.2:0"), "flags": 9, "wakeup": 24}, "server=192.0.2.1:20049 client=192.0.2.2:0 flags=0x9 wakeup-us=24"},
		"nfsd_compound_status":   {values{"args_opcnt": 4, "resp_opcnt": 2, "status": 10008, "name": "OP_OPEN"}, "op=2/4 OP_OPEN status=10008"},
		"nfs_xdr_status":         {values{"task_id": 1, "client_id": 2, "xid": 3, "version": 3, "error": 2, "program": "nfs", "procedure": "LOOKUP"}, "task:00000001@00000002 xid=0x00000003 nfsv3 LOOKUP error=-2 (NOENT)"},
		"nfs4_xdr_status":        {values{"task_id": 1, "client_id": 2, "xid": 3, "op": 15, "error": 10008}, "task:00000001@00000002 xid=0x00000003 error=-10008 (DELAY) operation=15"},
	} {
		f := all[name]
		if f == nil {
			t.Fatalf("no format of %s", name)
		}
		var got, text, again Event
		f.Read(f.event(c.values), &got)
		if !text.Parse([]byte("4711 [007] 1.5: " + name + ": " + c.want)) {
			t.Fatalf("%s: no line of an event", c.want)
		}
		text.Time, text.Rest = 0, nil
		if format(&got) != format(&text) || got.Kind == Other {
			t.Errorf("%s:\n%s, the text says\n%s", name, format(&got), format(&text))
		}
		if record := got.Append(nil); !again.Decode(record) || format(&again) != format(&got) {
			t.Errorf("%s: recorded as\n%s, not\n%s", name, format(&again), format(&got))
		}
	}
	if len(all) != len(Events) {
		t.Errorf("%d formats of %d events", len(all), len(Events))
	}
}

// Records that end too early, and formats that say anything, do no harm.
func TestFormatHostile(t *testing.T) {
	formats, records := calls(t)
	var e Event
	for i, f := range formats {
		for n := range records[i] {
			if f.Read(records[i][:n], &e); n < 8 && e.Seen != 0 {
				t.Errorf("%d bytes: %+v", n, e)
			}
		}
		f.Read(records[i], &e)
		record := e.Append(nil)
		for n := range record {
			if e.Decode(record[:n]) {
				t.Errorf("%d of %d bytes: %+v", n, len(record), e)
			}
		}
		if e.Decode(append(record, 0)) {
			t.Errorf("a byte more: %+v", e)
		}
	}
	const head = "name: x\nID: 7\n\tfield:int common_pid;\toffset:4;\tsize:4;\n"
	for _, bad := range []string{"", "name: x\nID: 70000\n", strings.Repeat("x", maxFormat+1), strings.Replace(head, "size:4", "size:-4", 1)} {
		if _, err := NewFormat(bad); err == nil {
			t.Errorf("%.40q: no error", bad)
		}
	}
}

// TestLongTimes: times that a number of nanoseconds does not hold are not there, whether a kernel or a recording has them.
func TestLongTimes(t *testing.T) {
	for _, n := range []uint64{maxMicros - 1, maxMicros, 1 << 63} {
		for _, x := range []struct {
			e    Event
			seen Seen
		}{
			{Event{Kind: Latency, Seen: XID | Times, Execute: n}, Times}, {Event{Kind: Latency, Seen: XID | Times, Backlog: n}, Times},
			{Event{Kind: Served, Seen: XID | Execution, Executed: n}, Execution}, {Event{Kind: Dequeued, Seen: Waited, Wakeup: n}, Waited},
		} {
			var got Event
			if !got.Decode(x.e.Append(nil)) || got.Has(x.seen) != (n < maxMicros) {
				t.Errorf("%+v: %+v", x.e, got)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	formats, records := calls(f)
	var e Event
	for i, x := range formats {
		x.Read(records[i], &e)
		f.Add(e.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e, again Event
		if !e.Decode(data) || len(data) > 0 && data[0] >= ' ' {
			return
		}
		if e.Kind != Other && !again.Decode(e.Append(nil)) || e.Kind != Other && e.Time == 0 && format(&again) != format(&e) {
			t.Errorf("%+v\n%+v", e, again)
		}
	})
}

var peer, server = netip.MustParseAddrPort("192.0.2.2:7"), netip.MustParseAddrPort("192.0.2.1:20049")

func all612(t testing.TB) map[string]*Format { return formats(t, "testdata/linux-6.12.formats") }

// calls are the events of a call of a client and of a server.
func calls(t testing.TB) (formats []*Format, records [][]byte) {
	all := all612(t)
	type values = map[string]any
	for _, c := range []struct {
		name   string
		values values
	}{
		{"xprtrdma_marshal", values{"task_id": 0x30, "client_id": 3, "xid": 0xd9268031, "hdrlen": 28, "headlen": 176}},
		{"xprt_lookup_rqst", values{"addr": "192.0.2.1", "port": "20049", "xid": 0x537095f9}},
		{"xprtrdma_reply", values{"task_id": 0x2e, "client_id": 3, "xid": 0xd7268031, "credits": 64}},
		{"rpc_stats_latency", values{"task_id": 1, "client_id": 2, "xid": 3, "version": 4, "progname": "nfs", "procname": "READ", "backlog": 5, "rtt": 300, "execute": 310}},
		{"svcrdma_decode_rqst", values{"cq_id": 2, "completion_id": 7, "xid": 0xa1f3f213, "vers": 1, "credits": 128, "proc": 1, "hdrlen": 28}},
		{"svc_process", values{"addr": "192.0.2.2", "xid": 1, "service": "nfsd", "vers": 4, "procedure": "COMPOUND"}},
		{"svc_stats_latency", values{"xid": 1, "server": server, "client": peer, "procedure": "COMPOUND", "execute": 1499}},
	} {
		f := all[c.name]
		formats, records = append(formats, f), append(records, f.event(c.values))
	}
	return formats, records
}

// BenchmarkEvents is the way of an event from the kernel's record to what the program knows of it.
func BenchmarkEvents(b *testing.B) {
	formats, records := calls(b)
	var record []byte
	var read, e Event
	b.ReportAllocs()
	for i := range b.N {
		k := i % len(formats)
		formats[k].Read(records[k], &read)
		if record = read.Append(record[:0]); !e.Decode(record) {
			b.Fatal(record)
		}
	}
}
