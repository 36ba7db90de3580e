package tshark

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// message is a call or a reply as we decode it.
type message struct {
	xid     uint32
	reply   bool
	from    netip.Addr
	header  values // of the transport header; nil if there is none
	values  values // of the RPC message; nil if none of it could be decoded
	tx      facts
	packets int
	first   uint64 // packets of its Send
	last    uint64
	seen    bool // tshark shows it
	inRPC   bool // tshark shows the RPC message in it

	decrypted bool // with its keytab, and the checksum was right
}

// facts has what exceptions may depend on.
type facts struct {
	fabric      rdma.Fabric
	connection  *rdma.Connection
	program     uint32
	version     uint32
	procedure   string
	state       transaction.State
	operations  []string
	first       rdma.Ref
	call, reply rdma.Ref
	callType    rpcrdma.Type
	replyType   rpcrdma.Type
	credentials string // oncrpc.BodyKind of the call
	readChunks  int    // read chunks of the call at other positions than 0
	longCall    bool   // Position-Zero Read chunk
	longReply   bool   // in the Reply chunk
	writeChunk  int    // bytes that the reply says are in Write chunks
	writes      int    // segments with data
	lastRead    rdma.Ref
	cut         bool // the capture cut call or reply
	retransmits int
}

// ours is everything that we decode of a capture.
type ours struct {
	frames   map[uint64]*frame
	messages []*message
	byXID    map[uint32][]*message
	streams  *streams
	stats    decode.Stats
	taps     int // where packets were captured
}

func decodeCapture(t *testing.T, file string) *ours {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := &ours{frames: make(map[uint64]*frame), byXID: make(map[uint32][]*message)}
	o.streams = newStreams(o.frames)
	view := rpc.View{}
	if name := keytabs[file]; name != "" {
		k, err := krb5.LoadKeytab(name)
		if err != nil {
			t.Fatal(err)
		}
		view.Unwrap = krb5.New(k, krb5.Options{})
	}
	taps := map[uint16]bool{}
	d := decode.New(decode.Options{Transactions: transaction.Options{KeepData: true}, Observers: []decode.Observer{{Packet: func(p *decode.PacketView) {
		f := &frame{
			values: values{}, time: p.Packet.Time,
			cut: uint64(len(p.Packet.Data)) < uint64(p.Packet.Length),
			src: p.Frame.Src,
		}
		o.frames[p.Packet.Number] = f
		taps[p.Packet.Tap] = true
		switch p.Fabric {
		case rdma.RoCEv2, rdma.RoCEv1, rdma.InfiniBand:
			f.infiniband(p)
		case rdma.TCP:
			f.tcp = true
			o.streams.segment(p.Frame, rdma.Ref{Time: p.Packet.Time, Number: p.Packet.Number})
		}
	}}}}, func(tx *transaction.Transaction) {
		view.Set(tx)
		o.transaction(&view)
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	o.stats, o.taps = d.Stats(), len(taps)
	o.streams.flush(o.stats.Last)
	for _, m := range o.messages {
		o.byXID[m.xid] = append(o.byXID[m.xid], m)
	}
	return o
}

func (o *ours) transaction(v *rpc.View) {
	tx := v.Tx
	f := facts{
		fabric: tx.Connection.Fabric, connection: tx.Connection,
		program: tx.Program, version: tx.Version, procedure: v.ProcedureName(), state: tx.State,
		first: tx.First(), call: tx.Call.Last, reply: tx.Reply.Last,
		cut: tx.Call.Cut || tx.Reply.Cut || v.ArgsCut || v.ResultCut, retransmits: tx.Retransmits,
		credentials: v.Wrapped(), lastRead: tx.Times.LastRead,
	}
	if tx.Call.Seen() && tx.Call.Transport {
		f.callType = tx.Call.Header.Type
		for _, c := range tx.Call.Header.ReadChunks() {
			if c.Position == 0 {
				f.longCall = true
			} else {
				f.readChunks++
			}
		}
	}
	if tx.Reply.Seen() && tx.Reply.Transport {
		h := &tx.Reply.Header
		f.replyType = h.Type
		f.longReply = h.Type == rpcrdma.TypeNoMsg
		for _, c := range h.Writes {
			for _, s := range c {
				if s.Length > 0 {
					f.writes++
				}
				f.writeChunk += int(s.Length)
			}
		}
	}
	for _, op := range v.Operations() {
		f.operations = append(f.operations, op.Name)
	}
	if tx.Call.Seen() {
		m := &message{xid: tx.XID, from: tx.Client().Addr, tx: f, packets: tx.Call.Packets, first: tx.Call.First.Number, last: tx.Call.Last.Number}
		m.header = transport(&tx.Call)
		if v.CallErr == nil {
			m.values = values{}
			m.call(v)
		}
		o.messages = append(o.messages, m)
	}
	if tx.Reply.Seen() {
		m := &message{xid: tx.XID, reply: true, from: tx.Server().Addr, tx: f, packets: tx.Reply.Packets, first: tx.Reply.First.Number, last: tx.Reply.Last.Number}
		m.header = transport(&tx.Reply)
		if v.ReplyErr == nil {
			m.values = values{}
			m.result(v)
		}
		o.messages = append(o.messages, m)
	}
}

// transport files a transport header.
func transport(m *transaction.Message) values {
	if !m.Transport {
		return nil
	}
	h, v := &m.Header, values{}
	v.add("rpcordma.xid", num(h.XID))
	v.add("rpcordma.version", num(h.Version))
	v.add("rpcordma.flow_control", num(h.Credits))
	v.add("rpcordma.msg_type", num(h.Type))
	switch h.Type {
	case rpcrdma.TypeError:
		v.add("rpcordma.errcode", num(h.Error))
		if h.Error == rpcrdma.ErrVers {
			v.add("rpcordma.vers_low", num(h.Low))
			v.add("rpcordma.vers_high", num(h.High))
		}
		return v
	case rpcrdma.TypeDone:
		return v
	case rpcrdma.TypeMsgP:
		v.add("rpcordma.rdma_align", num(h.Align))
		v.add("rpcordma.rdma_thresh", num(h.Threshold))
	}
	segment := func(s rpcrdma.Segment) {
		v.add("rpcordma.rdma_handle", num(s.Handle))
		v.add("rpcordma.rdma_length", num(s.Length))
		v.add("rpcordma.rdma_offset", num(s.Offset))
	}
	v.add("rpcordma.reads_count", num(len(h.Reads)))
	for _, s := range h.Reads {
		v.add("rpcordma.position", num(s.Position))
		segment(s.Segment)
	}
	v.add("rpcordma.writes_count", num(len(h.Writes)))
	for _, c := range h.Writes {
		v.add("rpcordma.segment_count", num(len(c)))
		for _, s := range c {
			segment(s)
		}
	}
	v.add("rpcordma.reply_count", boolean(h.HasReply))
	if h.HasReply {
		v.add("rpcordma.segment_count", num(len(h.Reply)))
	}
	for _, s := range h.Reply {
		segment(s)
	}
	return v
}

// call files an RPC call.
func (m *message) call(v *rpc.View) {
	o, c := m.values, v.Call()
	o.add("rpc.xid", num(c.XID))
	o.add("rpc.msgtyp", num(oncrpc.TypeCall))
	o.add("rpc.version", num(c.RPCVersion))
	o.add("rpc.program", num(c.Program))
	o.add("rpc.programversion", num(c.Version))
	o.add("rpc.procedure", num(c.Procedure))
	m.auth(c.Cred)
	if c.Cred.Flavor == oncrpc.RPCSecGSS {
		o.add("rpc.authgss.version", num(c.GSS.Version))
		o.add("rpc.authgss.procedure", num(c.GSS.Proc))
		o.add("rpc.authgss.seqnum", num(c.GSS.Sequence))
		o.add("rpc.authgss.service", num(c.GSS.Service))
		if len(c.GSS.Handle) > 0 {
			o.add("rpc.authgss.context", bin(c.GSS.Handle))
		}
	}
	m.auth(c.Verf)
	if b := v.CallBody(); b.Kind == oncrpc.BodyIntegrity && !b.Malformed {
		o.add("rpc.authgss.seqnum", num(b.Sequence))
	}
	if m.decrypted = v.CallOpened.How == rpc.Decrypted; m.decrypted {
		o.add("rpc.authgss.seqnum", num(v.CallOpened.Sequence))
	}
	if v.Args() != nil && v.ArgsErr == nil {
		m.body(v, v.Args())
	}
}

// auth files a credential or verifier.
func (m *message) auth(a oncrpc.Auth) {
	o := m.values
	o.add("rpc.auth.flavor", num(a.Flavor))
	if a.Flavor != oncrpc.AuthSys {
		return
	}
	var sys oncrpc.Sys
	if !sys.Decode(a.Body) {
		return
	}
	o.add("rpc.auth.stamp", num(sys.Stamp))
	o.add("rpc.auth.machinename", str(sys.Machine))
	o.add("rpc.auth.uid", num(sys.UID))
	o.add("rpc.auth.gid", num(sys.GID))
	for _, g := range sys.GIDs[:sys.Count] {
		o.add("rpc.auth.gid", num(g))
	}
}

// result files an RPC reply. tshark repeats program and procedure of the call.
func (m *message) result(v *rpc.View) {
	o, r := m.values, v.Reply()
	o.add("rpc.xid", num(r.XID))
	o.add("rpc.msgtyp", num(oncrpc.TypeReply))
	if v.CallErr == nil {
		o.add("rpc.program", num(v.Call().Program))
		o.add("rpc.programversion", num(v.Call().Version))
		o.add("rpc.procedure", num(v.Call().Procedure))
		o.add(requestFrame, num(v.Tx.Call.Last.Number))
		o.add(responseTime, nanoseconds(v.Tx.Reply.Last.Time-v.Tx.Call.Last.Time))
	}
	o.add("rpc.replystat", num(r.Stat))
	switch {
	case r.Stat == oncrpc.Accepted:
		m.auth(r.Verf)
		o.add("rpc.state_accept", num(r.Accept))
	default:
		o.add("rpc.state_reject", num(r.Reject))
		if r.Reject == oncrpc.AuthError {
			o.add("rpc.state_auth", num(r.AuthStat))
		}
	}
	switch b := v.ReplyBody(); {
	case b.Kind == oncrpc.BodyIntegrity && !b.Malformed:
		o.add("rpc.authgss.seqnum", num(b.Sequence))
	case v.ReplyOpened.How == rpc.Decrypted:
		m.decrypted = true
		o.add("rpc.authgss.seqnum", num(v.ReplyOpened.Sequence))
	case b.Kind == oncrpc.BodyInit:
		var g oncrpc.GSSInitResult
		if g.Decode(b.Data) {
			if len(g.Handle) > 0 {
				o.add("rpc.authgss.context", bin(g.Handle))
			}
			o.add("rpc.authgss.major", num(g.Major))
			o.add("rpc.authgss.minor", num(g.Minor))
			o.add("rpc.authgss.window", num(g.Window))
		}
	}
	if v.Result() != nil && v.ResultErr == nil {
		m.body(v, v.Result())
	}
}

// body files arguments or results.
func (m *message) body(v *rpc.View, x nfsMessage) {
	field := "nfs.opcode"
	if v.Tx.Backward {
		field = "nfs.cb.operation"
	}
	for _, op := range v.Operations() {
		if m.reply && op.Result != nil && op.Status == "NFS4ERR_OP_ILLEGAL" {
			// The server could not read the operation (RFC 8881, section 18.52).
			m.values.add(field, "10044")
			continue
		}
		if m.reply && op.Result != nil || !m.reply && op.Args != nil {
			m.values.add(field, num(op.Number))
		}
	}
	c := collector{out: m.values, data: func(d xdr.Data) []byte {
		b := d.Inline
		switch {
		case d.Chunk > 0 && m.reply:
			b = v.Tx.Data(transaction.WriteList, d.Chunk-1)
		case d.Chunk > 0:
			b = v.Tx.CallData(d.Chunk - 1)
		}
		return b[:min(len(b), int(d.Length))] // there may be padding
	}}
	c.walk(typeName(x), x)
}
