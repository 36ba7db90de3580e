package filter

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

const (
	longcall = "rocev2-nfs3-longcall.pcap"
	recall   = "iwarp-nfs41-recall.pcap"
	basic3   = "rocev2-nfs3-basic.pcap.zst"
	basic4   = "iwarp-nfs40-basic.pcap.zst"
)

// transactions decodes a sample.
func transactions(t testing.TB, name string, do func(v *rpc.View)) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join("..", "..", "samples", name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		do(&v)
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
}

func compile(t testing.TB, expr string) *Filter {
	t.Helper()
	f, err := Compile(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return f
}

// call builds the view of a transaction.
type call struct {
	program, version, procedure uint32
	args, res                   xdr.Message
	cred                        oncrpc.Auth
	change                      func(*transaction.Transaction)
	cut                         int // bytes of the call that were not captured
}

func (c call) view() *rpc.View {
	conn := &rdma.Connection{ID: 3, Fabric: rdma.RoCEv2}
	conn.Ends[0] = rdma.End{Addr: netip.MustParseAddr("192.168.1.2"), QPN: 17}
	conn.Ends[1] = rdma.End{Addr: netip.MustParseAddr("192.168.1.1"), QPN: 18}
	tx := &transaction.Transaction{
		Connection: conn, XID: 0xabcd, Program: c.program, Version: c.version, Procedure: c.procedure, Named: true,
	}
	const start = 1714564800_500000000 // 2024-05-01T12:00:00.5Z
	tx.Call.First, tx.Call.Last = rdma.Ref{Time: start, Number: 5}, rdma.Ref{Time: start + 1000, Number: 6}
	h := oncrpc.Call{XID: tx.XID, RPCVersion: 2, Program: c.program, Version: c.version, Procedure: c.procedure, Cred: c.cred}
	tx.Call.Payload = h.Append(nil)
	if c.args != nil {
		tx.Call.Payload = c.args.Append(tx.Call.Payload)
	}
	tx.Call.PayloadLength = len(tx.Call.Payload)
	tx.Call.Payload = tx.Call.Payload[:len(tx.Call.Payload)-c.cut]
	tx.Call.Bytes = uint64(tx.Call.PayloadLength)
	if c.res != nil {
		tx.Reply.First, tx.Reply.Last = rdma.Ref{Time: start + 250_000, Number: 9}, rdma.Ref{Time: start + 251_000, Number: 10}
		r := oncrpc.Reply{XID: tx.XID}
		tx.Reply.Payload = c.res.Append(r.Append(nil))
		tx.Reply.PayloadLength = len(tx.Reply.Payload)
		tx.Reply.Bytes = uint64(tx.Reply.PayloadLength)
	}
	if c.change != nil {
		c.change(tx)
	}
	v := &rpc.View{}
	v.Set(tx)
	return v
}

// read3 is a READ of NFSv3 that succeeds.
func read3() call {
	res := &nfs3.READ3res{}
	res.Resok.FileAttributes.AttributesFollow = true
	a := &res.Resok.FileAttributes.Attributes
	a.Type, a.Mode, a.Size = nfs3.NF3REG, 0o644, 1<<30
	a.Mtime = nfs3.Nfstime3{Seconds: 1714564800, Nseconds: 1}
	res.Resok.Count, res.Resok.Eof = 4096, true
	res.Resok.Data = xdr.Data{Length: 5, Inline: []byte("hello")}
	sys := oncrpc.Sys{Machine: []byte("client7"), UID: 1000, GID: 100, Count: 2}
	sys.GIDs[0], sys.GIDs[1] = 4, 24
	return call{
		program: nfs3.NFS_PROGRAM, version: 3, procedure: nfs3.NFSPROC3_READ,
		args: &nfs3.READ3args{File: nfs3.NfsFh3{Data: []byte{1, 2, 0xff}}, Offset: 65536, Count: 4096},
		res:  res,
		cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)},
		change: func(tx *transaction.Transaction) {
			tx.Call.Transport, tx.Reply.Transport = true, true
			tx.Call.Header = rpcrdma.Header{
				XID: tx.XID, Version: 1, Credits: 128,
				Writes: []rpcrdma.WriteChunk{{{Handle: 0x1234abcd, Length: 4096, Offset: 1 << 40}, {Handle: 7, Length: 1, Offset: 2}}},
			}
			tx.Reply.Header = rpcrdma.Header{XID: tx.XID, Version: 1, Credits: 32}
			tx.Notes = []transaction.Note{{Kind: transaction.ReplyRepeated}, {Kind: transaction.DoneNotSeen}}
			tx.Retransmits = 2
		},
	}
}

// open4 is a COMPOUND of NFSv4.1 whose LOOKUP fails.
func open4() call {
	return call{
		program: nfs4.NFS4_PROGRAM, version: 4, procedure: nfs4.NFSPROC4_COMPOUND,
		args: &nfs4.CompoundArgs{Tag: []byte("tag"), Minorversion: 1, Operations: nfs4.Operations{Ops: []nfs4.Op{
			{Number: uint32(nfs4.OP_SEQUENCE), Body: &nfs4.SEQUENCE4args{SaSlotid: 5}},
			{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.PUTFH4args{Object: []byte{1, 2, 3}}},
			{Number: uint32(nfs4.OP_LOOKUP), Body: &nfs4.LOOKUP4args{Objname: []byte("Größe")}},
			{Number: uint32(nfs4.OP_READ), Body: &nfs4.READ4args{Offset: 5, Count: 6}},
		}}},
		res: &nfs4.CompoundRes{Status: nfs4.NFS4ERR_NOENT, Operations: nfs4.Operations{Ops: []nfs4.Op{
			{Number: uint32(nfs4.OP_SEQUENCE), Body: &nfs4.SEQUENCE4res{}},
			{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}},
			{Number: uint32(nfs4.OP_LOOKUP), Body: &nfs4.Status4res{Status: nfs4.NFS4ERR_NOENT}},
		}}},
	}
}

func TestMatch(t *testing.T) {
	read, open := read3().view(), open4().view()
	lost := read3()
	lost.res = nil
	noReply := lost.view()
	null := call{program: 100003, version: 3}.view()
	unknown := call{program: 4711, version: 1, procedure: 9}.view()
	for _, c := range []struct {
		v    *rpc.View
		expr string
		want bool
	}{
		{read, "", true},
		// Numbers.
		{read, "xid == 43981", true},
		{read, "xid == 0xABCD", true},
		{read, "xid == 0xabce", false},
		{read, "xid == 0000abcd", true}, // as listed
		{read, "xid == 0000abce", false},
		{read, "xid != 0000ABCD", false},
		{read, "xid in {1, 0000abcd}", true},
		{read, "xid == 0o125715", true},
		{read, "xid == 0125715", true},
		{read, "xid == 0b1010101111001101", true},
		{read, "xid != 43981", false},
		{read, "xid != 1", true},
		{read, "xid < 43982 && xid <= 43981 && xid > 43980 && xid >= 43981", true},
		{read, "xid < 43981 || xid > 43981", false},
		{read, "xid in {1, 43981}", true},
		{read, "xid in {1, 43980..43982}", true},
		{read, "xid in {1..43980}", false},
		{read, "xid not in {1, 2}", true},
		{read, "xid not in {1, 43981}", false},
		{read, "xid & 0x8000", true},
		{read, "xid & 0x10", false},
		{read, "nfs.READ.offset == 64k && nfs.READ.offset == 64KiB", true},
		{read, "nfs.READ.offset == 64KB", false},
		{read, "nfs.size == 1G && nfs.size == 1GiB && nfs.size > 1GB && nfs.size < 1t", true},
		{read, "handle == 0x1234abcd && handle == 12:34:ab:cd", true},
		// Several values.
		{read, "handle == 7", true},
		{read, "handle != 7", false},
		{read, "handle !== 7", true},
		{read, "handle === 7", false},
		{read, "handle != 8", true},
		{read, "not handle == 7", false},
		{read, "handle > 1000", true},
		{read, "handle < 1000", true},
		{read, "handle in {7}", true},
		{read, "handle not in {7}", false},
		// Without a value, every comparison fails.
		{read, "read_chunks.position == 0", false},
		{read, "read_chunks.position != 0", false},
		{read, "read_chunks.position === 0", false},
		{read, "read_chunks.position !== 0", false},
		{read, "read_chunks.position not in {0}", false},
		{read, "not read_chunks.position == 0", true},
		// Existence.
		{read, "write_chunks", true},
		{read, "read_chunks", false},
		{read, "read_chunks == 0", true},
		{read, "reply_chunk", false},
		{read, "retransmits && retransmits == 2", true},
		{null, "retransmits", false},
		{read, "rdma_reads", false},
		{read, "notes", true},
		{null, "notes", false},
		{read, "reply_frame", true},
		{noReply, "reply_frame", false},
		{noReply, "latency", false},
		{noReply, "latency < 1s", false},
		{noReply, "status", false},
		{noReply, "error", false},
		{read, "minor_version", false},
		{open, "minor_version == 1", true},
		{read, "file && file.name", false},
		{open, "file && file.name", true},
		// Durations.
		{read, "latency == 251us", true},
		{read, "latency_ns == 251000", true},
		{read, "latency_ns.total == 251µs", true},
		{read, "latency > .25ms", true},
		{read, "latency > 0.25ms && latency < 1s && latency < 5m", true},
		{read, "latency in {250us..252us}", true},
		{read, "latency.server == 249us", true},
		{read, "latency_ns.server == 249000", true},
		{read, "latency.call_transfer == 1us", true},
		{read, "latency.ack", false},
		{read, "latency > -5", true},
		// Times.
		{read, "time == 2024-05-01T12:00:00.5Z", true},
		{read, "time == 2024-05-01T14:00:00.5+02:00", true},
		{read, "time == 2024-05-01T12:00:00.5", true},
		{read, "time == '2024-05-01 12:00:00.5'", true},
		{read, "time > 2024-05-01", true},
		{read, "time == 12:00:00.5", true},
		{read, "end == 12:00:00.500251", true},
		{read, "time <= 12:00:00.5001 and end >= 12:00:00.5001", true},
		{noReply, "end", false},
		{read, "time >= 12:00:00 and time < 12:00:01", true},
		{read, "time < 12:00:00", false},
		{read, "time > '12:00'", true},
		{read, "time == 14:00:00.5+02:00", true},
		{read, "time == 01:00:00.5+13:00", true},
		{read, "time in {11:59:59..12:00:01}", true},
		{read, "time in {13:00..14:00}", false},
		{read, "nfs.mtime < 12:00:00.1", true},
		{read, "time > 2024-05-01T12:00:00.500000001Z", false},
		{read, "time in {2024-05-01..2024-05-02}", true},
		{read, "time in {2024-05-02..2024-05-03}", false},
		{read, "nfs.mtime == 2024-05-01T12:00:00.000000001Z", true},
		{read, "nfs.mtime > 2024-05-01T12:00:00Z and nfs.mtime <= time", true}, // a word: not a time
		// Addresses.
		{read, "client == 192.168.1.2 && server == 192.168.1.1", true},
		{read, "client == ::ffff:192.168.1.2", true},
		{read, "client == 192.168.0.0/16", true},
		{read, "client == 192.168.1.77/24", true},
		{read, "client == 10.0.0.0/8", false},
		{read, "client == ::/0", false},
		{read, "client in {10.0.0.0/8, 192.168.1.2}", true},
		{read, "client in {192.168.1.1..192.168.1.3}", true},
		{read, "client in {192.168.1.3..192.168.1.9}", false},
		{read, "client in {fe80::1..fe80::9}", false},
		{read, "ip == 192.168.1.1 && addr == 192.168.1.2", true},
		{read, "ip != 192.168.1.1", false},
		{read, "ip !== 192.168.1.1", true},
		{read, "host 192.168.1.1 and net 192.168.1.0/24", true},
		{read, "client matches '^192\\.168'", true},
		// Booleans.
		{read, "nfs.eof && nfs.res.eof == true && nfs.eof == 1 && nfs.eof != false", true},
		{read, "nfs.eof == false", false},
		{read, "error", false},
		{read, "error == false", true},
		{open, "error && error == yes", true},
		{read, "backward", false},
		{read, "backward == no", true},
		// Symbols.
		{read, "op == READ", true},
		{read, "op == read", true},
		{read, "op != read", false},
		{read, "op == WRITE", false},
		{read, "op in {READ, WRITE}", true},
		{read, "op contains ea", true},
		{read, "op matches '^RE'", true},
		{open, "op == COMPOUND && op == LOOKUP && op == READ", true},
		{read, "operation == read && operation_group == READ", true},
		{open, "operation == LOOKUP+READ", true},
		{open, "operation == lookup", false},
		{open, "operation contains look && operation matches 'READ$'", true},
		{open, "operation in {OPEN, LOOKUP+READ}", true},
		{open, "operation_group == READ", true},
		{open, "operation_group == LOOKUP", false},
		{open, "procedure == LOOKUP", false},
		{open, "operations == 4 && operations.op == LOOKUP", true},
		{open, "operations.status == NFS4ERR_NOENT && operations.status == NFS4_OK", true},
		{open, "operations.status != NFS4_OK", false},
		{open, "operations.status !== NFS4_OK", true},
		{open, "status == NFS4ERR_NOENT", true},
		{open, "status == nfs4err_noent", true},
		{open, "status == noent", true},
		{open, "status != ok && status not in {ok, EXIST}", true},
		{open, "status in {ok, noent}", true},
		{read, "status == ok", true},
		{read, "status != OK", false},
		{noReply, "status != ok", true},
		{noReply, "status == ok", false},
		{noReply, "status != NFS3_OK", false},
		{open, "status == 2", true},
		{open, "status != NFS4_OK", true},
		{open, "status > 1", true},
		{open, "status in {1..3}", true},
		{open, "status in {NFS3_OK, NFS4ERR_NOENT}", true},
		{read, "status == NFS3_OK && status == OK && status == 0", true},
		{read, "status == noent", false},
		{read, "program == nfs && program == 100003 && version == 3", true},
		{read, "procedure == READ && procedure == 6", true},
		{null, "procedure == NULL && op == null", true},
		{unknown, "program == 4711 && procedure == 9 && op == 9", true},
		{unknown, "program == nfs", false},
		{read, "direction == forward && fabric == RoCEv2 && state == complete", true},
		{read, "call_type == RDMA_MSG && reply_type == msg", true},
		{null, "call_type", false},
		{read, "nfs.type == NF3REG && nfs.type == 1", true},
		{read, "rpc.flavor == AUTH_SYS && rpc.flavor == sys && rpc.flavor == 1", true},
		// Flags.
		{read, "nfs.mode == 0644", true},
		{read, "nfs.mode & RUSR && nfs.mode & MODE3_WUSR && nfs.mode & 0400", true},
		{read, "nfs.mode & XUSR", false},
		{read, "nfs.mode contains rgrp", true},
		{read, "nfs.mode matches 'RUSR.*ROTH'", true},
		{read, "nfs.mode == RUSR", false},
		{read, "nfs.mode > 0600", true},
		// Texts.
		{open, "file.name == Größe && nfs.LOOKUP.objname == 'Größe'", true},
		{open, "file.name == größe", false},
		{open, "file.name contains röß", true},
		{open, "file.name matches '^Gr..e$'", true},
		{open, "file.name matches '(?i)^GRÖSSE$|größe'", true},
		{open, "file.name > Gr && file.name < Gs", true},
		{open, "file.name in {a, Größe}", true},
		{open, "nfs.tag == tag", true},
		{open, "nfs.args.tag == tag && nfs.res.tag == ''", true},
		{read, "machine == client7 && machine in {client1..client9}", true},
		{read, "notes contains again && notes == \"RDMA_DONE not seen\"", true},
		{read, "note_codes == reply_repeated && note_codes == done_not_seen", true},
		{read, "note_codes == reply_repeated_other", false},
		{null, "note_codes", false},
		// Bytes.
		{read, "file.filehandle == 01:02:ff", true},
		{read, "file.filehandle == 0x0102FF && file.filehandle == 0102ff && file.filehandle == 01-02-ff", true},
		{read, "file.filehandle == '\\x01\\x02\\xff'", true},
		{read, "file.filehandle contains 02:ff", true},
		{read, "file.filehandle contains ff:02", false},
		{read, "file.filehandle > 01:02 && file.filehandle < 01:03", true},
		{read, "file.filehandle matches '^\\x01'", true},
		{read, "nfs.READ.file == 01:02:ff && nfs.READ.file.data == 01:02:ff && nfs.file == 0102ff", true},
		{read, "file == 0102ff", true}, // as text, for lack of a name
		{read, "nfs.res.data == 'hello' && nfs.res.data contains 'ell'", true},
		{read, "nfs.res.data.length == 5", true},
		// Credentials.
		{read, "uid == 1000 && gid == 100 && gid == 24 && rpc.gids == 4", true},
		{read, "rpc.machinename == client7", true},
		{null, "uid", false},
		{null, "not uid == 0", true},
		// Transport.
		{read, "rpcrdma && rpcrdma.rdma_credit == 128 && rpcrdma.res.rdma_credit == 32", true},
		{read, "write_chunks.length == 4k && write_chunks.offset == 1t && write_chunks == 1", true},
		{read, "credits_requested == 128 && credits_granted == 32", true},
		{null, "rpcrdma", false},
		{read, "endpoint == 17 && qp == 18 && client_endpoint == 17", true},
		{read, "port", false},
		{read, "frame == 6 && frame == 10", true},
		// Programs.
		{read, "nfs && nfs.READ && nfs.args.READ && nfs.READ.file_attributes", true},
		{read, "mount || nfs_cb || nfs.WRITE", false},
		{open, "nfs.COMPOUND && nfs.LOOKUP && nfs.COMPOUND.LOOKUP.objname", true},
		{open, "nfs.GETATTR", false},
		{open, "nfs.SEQUENCE.sa_slotid == 5 && nfs.PUTFH.object == 01:02:03", true},
		{open, "nfs.READ.offset == 5 && nfs.args.count == 6", true},
		{open, "nfs.res.READ", false},
		{open, "nfs.LOOKUP.status == NFS4ERR_NOENT", true},
		{open, "nfs.PUTFH.status == NFS4ERR_NOENT", false},
		{open, "nfs.status == NFS4ERR_NOENT", true},
		{open, "nfs.COMPOUND.minorversion == 1", true},
		{unknown, "nfs.READ.offset || nfs.status", false},
		{noReply, "nfs.READ.offset == 64k", true},
		{noReply, "nfs.res.eof", false},
		// Operators.
		{read, "op == READ and not error or xid == 1", true},
		{read, "xid == 1 and op == READ or op == READ", true},
		{read, "xid == 1 and (op == READ or op == READ)", false},
		{read, "not (xid == 1 or xid == 2)", true},
		{read, "not xid == 1 and xid == 2", false},
		{read, "!!error", false},
	} {
		if strings.Contains(c.expr, "<= time") {
			if _, err := Compile(c.expr); err == nil {
				t.Errorf("%s: a field as a value was accepted", c.expr)
			}
			continue
		}
		if got := compile(t, c.expr).Match(c.v); got != c.want {
			t.Errorf("%s: %v, want %v", c.expr, got, c.want)
		}
	}
}

func TestMatchLID(t *testing.T) {
	c := read3()
	change := c.change
	c.change = func(tx *transaction.Transaction) {
		change(tx)
		tx.Connection.Ends[0].Addr = link.LID(5)
		tx.Connection.Ends[1].Addr = netip.Addr{}
	}
	v := c.view()
	for expr, want := range map[string]bool{
		"client == 'lid 5'": true, "client == 'LID 5'": true, "client == 'lid 6'": false, "client == 10.0.0.1": false,
		"client matches 'lid 5'": true, "client in {::..::9}": false, "server": false, "server != 10.0.0.1": false,
	} {
		if got := compile(t, expr).Match(v); got != want {
			t.Errorf("%s: %v, want %v", expr, got, want)
		}
	}
	r, err := Field("addr")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Append(nil, v); !slices.Equal(got, []string{"lid 5"}) {
		t.Errorf("addr: %q", got)
	}
}

// What the capture cut is not there: it is not 0.
func TestMatchCut(t *testing.T) {
	write := &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: []byte{1, 2, 3, 4}}, Offset: 7, Count: 100, Data: xdr.Data{Length: 100, Inline: make([]byte, 100)}}
	c := call{program: 100003, version: 3, procedure: nfs3.NFSPROC3_WRITE, args: write, cut: 60}
	v := c.view()
	for expr, want := range map[string]bool{
		"nfs.WRITE.offset == 7": true, "nfs.WRITE.data.length == 100": true, "nfs.WRITE.data": true,
		"nfs.WRITE.data contains '\\x00'": false, // not all of it is there
	} {
		if got := compile(t, expr).Match(v); got != want {
			t.Errorf("60 bytes cut: %s: %v, want %v", expr, got, want)
		}
	}
	c.cut = 104 + 4 + 8 // in the middle of offset
	v = c.view()
	for expr, want := range map[string]bool{
		"nfs.WRITE.file == 01:02:03:04": true, "nfs.WRITE.offset": false, "nfs.WRITE.offset == 0": false, "nfs.WRITE.stable": false,
		"nfs.WRITE.data": false, "nfs.WRITE.data.length == 0": false, "nfs.WRITE": true,
	} {
		if got := compile(t, expr).Match(v); got != want {
			t.Errorf("116 bytes cut: %s: %v, want %v", expr, got, want)
		}
	}
	o := open4()
	o.cut = 8 // in the arguments of READ
	v = o.view()
	for expr, want := range map[string]bool{
		"op == READ": true, "nfs.LOOKUP.objname": true, "nfs.READ.count": false, "nfs.tag == tag": true, "operations == 4": true,
	} {
		if got := compile(t, expr).Match(v); got != want {
			t.Errorf("COMPOUND cut: %s: %v, want %v", expr, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	read, open := read3().view(), open4().view()
	for _, c := range []struct {
		v    *rpc.View
		name string
		want string // joined with a comma
	}{
		{read, "xid", "43981"},
		{read, "time", "2024-05-01T12:00:00.500000000Z"},
		{read, "client", "192.168.1.2"},
		{read, "ip", "192.168.1.2,192.168.1.1"},
		{read, "op", "READ"},
		{open, "op", "COMPOUND,SEQUENCE,PUTFH,LOOKUP,READ"},
		{open, "operations.status", "NFS4_OK,NFS4_OK,NFS4ERR_NOENT"},
		{read, "latency", "251000"},
		{read, "latency.ack", ""},
		{read, "handle", "305441741,7"},
		{read, "read_chunks", "0"},
		{read, "error", "false"},
		{read, "file.filehandle", "0102ff"},
		{open, "file.name", "Größe"},
		{read, "notes", "reply sent again,RDMA_DONE not seen"},
		{read, "note_codes", "reply_repeated,done_not_seen"},
		{read, "gid", "100,4,24"},
		{read, "nfs.mode", "MODE3_RUSR|MODE3_WUSR|MODE3_RGRP|MODE3_ROTH"},
		{read, "nfs.res.mtime", "2024-05-01T12:00:00.000000001Z"},
		{read, "nfs.res.data", "68656c6c6f"},
		{read, "nfs.READ.file", "0102ff"},
		{read, "nfs.READ", "READ"},
		{read, "nfs", "nfs"},
		{read, "NFS.Read.Offset", "65536"},
		{open, "nfs.status", "NFS4ERR_NOENT,NFS4_OK,NFS4ERR_NOENT"},
		{open, "nfs.tag", "tag,"},
		{open, "nfs.SEQUENCE", "SEQUENCE,SEQUENCE"},
	} {
		r, err := Field(c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for range 2 {
			if got := strings.Join(r.Append([]string{"first"}, c.v)[1:], ","); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
}

func TestSamples(t *testing.T) {
	for _, c := range []struct {
		sample, expr string
		same         string // an expression that must select the same
		some         bool   // and something at all
	}{
		{basic3, "procedure == READ", "op == READ", true},
		{basic3, "nfs.READ", "program == nfs && procedure == READ", true},
		{basic3, "nfs.READ.offset", "procedure == READ", true},
		{basic3, "nfs.READ.offset >= 64k", "procedure == READ && file.offset >= 65536", false},
		{basic3, "nfs.status == NFS3ERR_NOENT", "program == nfs && status == NFS3ERR_NOENT", false},
		{longcall, "read_chunks.position == 0", "rpcrdma.args.rdma_reads.position == 0", true},
		{longcall, "read_chunks.position > 0", "read_chunks.position !== 0", true},
		{longcall, "error", "status && status != OK && status != SUCCESS", false},
		{longcall, "not error", "error == false", true},
		{longcall, "uid == 0", "rpc.uid == 0", true},
		{longcall, "xid", "rpc.args.xid", true},
		{longcall, "handle", "read_chunks || write_chunks || reply_chunk.handle", true},
		{recall, "nfs_cb", "program == nfs_cb", true},
		{recall, "nfs_cb.CB_RECALL", "op == CB_RECALL", true},
		{recall, "nfs_cb.CB_RECALL.fh", "op == CB_RECALL", true},
		{recall, "backward", "direction == backward", true},
		{recall, "nfs.OPEN.claim.file", "nfs.OPEN.claim.claim == CLAIM_NULL", true},
		{recall, "nfs.SEQUENCE.sa_sessionid", "op == SEQUENCE", true},
		{recall, "nfs.READ.count > 0", "file.count > 0 && op == READ", false},
		{recall, "nfs.GETATTR.obj_attributes.size", "operations.op == GETATTR && nfs.obj_attributes.size", true},
		{recall, "nfs.COMPOUND.minorversion == 1", "minor_version == 1 && program == nfs", true},
	} {
		f, same := compile(t, c.expr), compile(t, c.same)
		n := 0
		transactions(t, c.sample, func(v *rpc.View) {
			a, b := f.Match(v), same.Match(v)
			if a != b {
				t.Errorf("%s: xid %d: %s is %v, %s is %v", c.sample, v.Tx.XID, c.expr, a, c.same, b)
			}
			if a {
				n++
			}
			if a != f.Clone().Match(v) {
				t.Errorf("%s: the clone differs", c.expr)
			}
		})
		if c.some && n == 0 {
			t.Errorf("%s: %s selects nothing", c.sample, c.expr)
		}
	}
}

// The operations by name, without their results, equal those of View.
func TestOperationNames(t *testing.T) {
	r, err := Field("operations.op")
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range []string{recall, basic4, "rocev2-nfs3-snaplen256.pcap.zst", "rocev2-nfs41-midstream.pcap.zst"} {
		transactions(t, sample, func(v *rpc.View) {
			got := r.Append(nil, v)
			var want []string
			for _, o := range v.Operations() {
				want = append(want, o.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: xid %d: %q, want %q", sample, v.Tx.XID, got, want)
			}
		})
	}
}
