package session_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func record(t testing.TB, file string) *session.Report { return recordAll(t, file) }

func recordAll(t testing.TB, files ...string) *session.Report {
	t.Helper()
	c, err := capture.Open(files, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := session.New(nil)
	v := rpc.View{Names: &rpc.Names{}}
	opt := decode.Options{Observers: []decode.Observer{r.Observer()}}
	opt.Transactions.Ended = r.Ended
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		r.Transaction(&v)
	})
	if err := d.Run(c); err != nil {
		t.Fatal(err)
	}
	return r.Report([]string{filepath.Base(files[0])})
}

// TestTenants: equal sessions, clients and addresses in two overlays are two.
func TestTenants(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap"} {
		file := "../../samples/" + name
		one := record(t, file)
		var wrapped [2]string
		for i := range wrapped {
			wrapped[i] = filepath.Join(t.TempDir(), name)
			f, err := os.Create(wrapped[i])
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(wrap.Copy("vxlan", uint32(1+i), file, f), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		both := recordAll(t, wrapped[:]...)
		if len(both.Sessions) != 2*len(one.Sessions) || len(both.Clients) != 2*len(one.Clients) || len(both.Sessions)+len(both.Clients) == 0 {
			t.Errorf("%s: %d sessions and %d clients, want twice %d and %d", name, len(both.Sessions), len(both.Clients), len(one.Sessions), len(one.Clients))
		}
		for i := range both.Sessions {
			if n, want := len(both.Sessions[i].Connections), len(one.Sessions[i/2].Connections); n != want {
				t.Errorf("%s: session %d has %d connections, want %d", name, i, n, want)
			}
		}
		for i := range both.Clients {
			if n, want := len(both.Clients[i].Connections), len(one.Clients[i/2].Connections); n != want {
				t.Errorf("%s: client %d has %d connections, want %d", name, i, n, want)
			}
		}
	}
}

// TestWaits compares what calls may have waited for slots with the time in which all were in use: in each of the two
// captures where that happened, a call came after it each time.
func TestWaits(t *testing.T) {
	for file, want := range map[string]int{
		"../../samples/rocev2-nfs41-mixed-load.pcap.zst": 6, "testdata/rxe-nfs41-nconnect.pcap.zst": 1, "testdata/rxe-nfs41-trunk.pcap.zst": 0,
	} {
		for _, concurrent := range []bool{false, true} {
			c, err := capture.Open([]string{file}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := session.New(nil)
			v := rpc.View{}
			n, sum := 0, int64(0)
			opt := decode.Options{Observers: []decode.Observer{r.Observer(), session.New(nil).Observer()}, Concurrent: concurrent}
			opt.Transactions.Ended = r.Ended
			d := decode.New(opt, func(tx *transaction.Transaction) {
				v.Set(tx)
				r.Transaction(&v)
				if tx.Slots > 0 {
					n++
					sum += int64(tx.Slots)
				}
			})
			if err := d.Run(c); err != nil {
				t.Fatal(err)
			}
			c.Close()
			s := &r.Report(nil).Sessions[0].Slots
			if n != want || uint64(n) != s.After || sum != s.Full {
				t.Errorf("%s: %d waited for %d, want %d; in the report %d, for %d", file, n, sum, want, s.After, s.Full)
			}
		}
	}
}

// TestCaptures compares with what was written down: four connections of one client, two addresses of one server,
// block layouts, callbacks, a server that restarted, a session that began before the capture.
func TestCaptures(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.pcap.zst")
	files = append(files, "../../samples/rocev2-nfs41-recall.pcap", "../../samples/rocev2-nfs41-restart.pcap.zst",
		"../../samples/iwarp-nfs41-midstream.pcap.zst", "../../samples/rocev2-nfs41-mixed-load.pcap.zst")
	if len(files) != 8 {
		t.Fatal(files)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".pcap")
		rep := record(t, file)
		for i := range rep.Sessions {
			s := &rep.Sessions[i]
			// Sums must agree, however the calls were spread.
			var calls, series uint64
			var busy, answered int64
			for _, c := range s.Connections {
				calls += c.Calls
			}
			for _, v := range s.Series {
				series += v.Calls
				busy += v.Busy
				if v.Busy > s.Interval*int64(s.Slots.Most) {
					t.Errorf("%s: more slots in use than at most: %+v", name, v)
				}
			}
			answered = int64(s.Slots.Mean * float64(s.Slots.Time))
			if calls != s.Calls || series > s.Calls || busy < answered*9/10 || busy > answered*11/10+1e6 {
				t.Errorf("%s: %d calls, %d by connection, %d over time; busy %d and %d", name, s.Calls, calls, series, busy, answered)
			}
			s.Series = nil // long, and checked above
		}
		got, err := json.MarshalIndent(rep, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(got)+"\n" {
			t.Errorf("%s differs (go test -update, if this is right)", golden)
		}
	}
}

// TestSpread checks what the two captures were made for.
func TestSpread(t *testing.T) {
	rep := record(t, "testdata/rxe-nfs41-nconnect.pcap.zst")
	if s := rep.Sessions[0]; len(rep.Sessions) != 1 || len(s.Connections) != 4 || s.Granted.Slots != 4 || s.Slots.Most != 4 || s.Slots.Full == 0 || len(rep.Trunks) != 0 {
		t.Errorf("%+v", rep)
	}
	rep = record(t, "testdata/rxe-nfs41-trunk.pcap.zst")
	if len(rep.Sessions) != 1 || len(rep.Trunks) != 1 || rep.Trunks[0].Kind != "session trunking" || len(rep.Trunks[0].Servers) != 2 {
		t.Errorf("%+v", rep.Trunks)
	}
	rep = record(t, "testdata/rxe-nfs3-nconnect.pcap.zst")
	if len(rep.Clients) != 1 || len(rep.Clients[0].Connections) != 4 || rep.Clients[0].Version != "3" {
		t.Errorf("%+v", rep.Clients)
	}
	rep = record(t, "testdata/rxe-nfs41-pnfs.pcap.zst")
	if len(rep.Layouts) != 3 || rep.Layouts[0].Type != "block" || rep.Layouts[0].Path != "export/p1" || len(rep.Devices) != 1 {
		t.Errorf("%+v", rep.Layouts)
	}
}

// world makes transactions without a network.
type world struct {
	t   *testing.T
	r   *session.Recorder
	v   rpc.View
	now int64
	n   uint64
	id  [16]byte
}

func newWorld(t *testing.T) *world {
	return &world{t: t, r: session.New(nil), v: rpc.View{Names: &rpc.Names{}}, now: 1e9, id: [16]byte{1, 2, 3}}
}

func connection(id int, client, server string) *rdma.Connection {
	c := &rdma.Connection{ID: id, Fabric: rdma.RoCEv2}
	c.Ends[0].Addr, c.Ends[1].Addr = netip.MustParseAddr(client), netip.MustParseAddr(server)
	return c
}

func (w *world) ref() rdma.Ref {
	w.n++
	w.now += 1000
	return rdma.Ref{Time: w.now, Number: w.n}
}

func op(n nfs4.NfsOpnum4, body xdr.Message) nfs4.Op { return nfs4.Op{Number: uint32(n), Body: body} }

// call begins a COMPOUND with a SEQUENCE.
func (w *world) call(c *rdma.Connection, slot, highest uint32, ops ...nfs4.Op) *transaction.Transaction {
	first := op(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: w.id, SaSlotid: slot, SaHighestSlotid: highest})
	return w.compound(c, append([]nfs4.Op{first}, ops...)...)
}

// compound begins a COMPOUND.
func (w *world) compound(c *rdma.Connection, ops ...nfs4.Op) *transaction.Transaction {
	a := nfs4.CompoundArgs{Minorversion: 1}
	a.Ops = ops
	head := []byte{0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	tx := &transaction.Transaction{Connection: c, XID: 9, Program: 100003, Version: 4, Procedure: 1, Named: true}
	tx.Call.Payload = a.Append(head)
	tx.Call.PayloadLength = len(tx.Call.Payload)
	tx.Call.First = w.ref()
	tx.Call.Last = tx.Call.First
	w.r.Message(tx, false, &rdma.Send{First: tx.Call.First, Last: tx.Call.First})
	return tx
}

// answer ends it. target is the highest slot that the server wants.
func (w *world) answer(tx *transaction.Transaction, target uint32, ops ...nfs4.Op) {
	first := op(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4res{SrResok4: nfs4.SEQUENCE4resok{SrSessionid: w.id, SrTargetHighestSlotid: target}})
	w.results(tx, append([]nfs4.Op{first}, ops...)...)
}

// results ends a COMPOUND.
func (w *world) results(tx *transaction.Transaction, ops ...nfs4.Op) {
	res := nfs4.CompoundRes{}
	res.Ops = ops
	tx.Reply.Payload = res.Append([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	tx.Reply.PayloadLength = len(tx.Reply.Payload)
	tx.Reply.First = w.ref()
	tx.Reply.Last = tx.Reply.First
	w.r.Message(tx, true, &rdma.Send{First: tx.Reply.First, Last: tx.Reply.First})
	w.v.Set(tx)
	if w.v.CallErr != nil || w.v.ReplyErr != nil || w.v.ArgsErr != nil || w.v.ResultErr != nil {
		w.t.Fatal(w.v.CallErr, w.v.ReplyErr, w.v.ArgsErr, w.v.ResultErr)
	}
	w.v.Learn()
	w.r.Transaction(&w.v)
}

// Addresses of servers: which are of one server, and which no session uses.
func TestServers(t *testing.T) {
	w := newWorld(t)
	greet := func(c *rdma.Connection, major, scope string) {
		name := []nfs4.NfsImplId4{{NiiDomain: []byte("example.org"), NiiName: []byte("server 1")}}
		tx := w.compound(c, op(nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: nfs4.ClientOwner4{CoOwnerid: []byte("me")}}))
		w.results(tx, op(nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4res{EirResok4: nfs4.EXCHANGE_ID4resok{
			EirServerOwner: nfs4.ServerOwner4{SoMajorId: []byte(major)}, EirServerScope: []byte(scope), EirServerImplId: name,
		}}))
	}
	first, second := connection(1, "192.0.2.9", "192.0.2.1"), connection(2, "192.0.2.9", "192.0.2.2")
	greet(first, "a", "scope")
	w.answer(w.call(first, 0, 0), 9)
	greet(second, "a", "scope")
	greet(second, "a", "scope")
	greet(connection(3, "192.0.2.9", "192.0.2.3"), "b", "scope")
	greet(connection(4, "192.0.2.9", "192.0.2.4"), "a", "another scope")
	var got []string
	for _, s := range w.r.Report(nil).Servers {
		got = append(got, fmt.Sprint(s.Address, " ", s.Used, " ", s.SameAs, " ", s.ServerProgram))
	}
	want := []string{
		"192.0.2.1 true  server 1 (example.org)", "192.0.2.2 false 192.0.2.1 server 1 (example.org)",
		"192.0.2.3 false  server 1 (example.org)", "192.0.2.4 false  server 1 (example.org)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Callbacks on a connection that carries calls only, and on one that was bound to the backchannel.
func TestUnboundCallbacks(t *testing.T) {
	for direction, want := range map[nfs4.ChannelDirFromServer4]bool{0: true, nfs4.CDFS4_FORE: true, nfs4.CDFS4_BACK: false, nfs4.CDFS4_BOTH: false} {
		w := newWorld(t)
		c := connection(1, "192.0.2.9", "192.0.2.1")
		c.Setup[0].Message, c.Setup[1].Message = rdma.SetupREQ, rdma.SetupREP
		w.answer(w.call(c, 0, 0), 9)
		if direction != 0 {
			tx := w.compound(c, op(nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: w.id}))
			w.results(tx, op(nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4res{
				BctsrResok4: nfs4.BIND_CONN_TO_SESSION4resok{BctsrSessid: w.id, BctsrDir: direction},
			}))
		}
		w.callback(c)
		notes := strings.Join(w.r.Report(nil).Notes, "; ")
		if got := strings.Contains(notes, "1 callbacks of session 01020300"); got != want {
			t.Errorf("%v: %s", direction, notes)
		}
	}
}

// callback is a CB_SEQUENCE without a reply.
func (w *world) callback(c *rdma.Connection) {
	a := nfs4.CbCompoundArgs{Minorversion: 1}
	a.Ops = []nfs4.Op{op(nfs4.NfsOpnum4(nfs4.OP_CB_SEQUENCE), &nfs4.CB_SEQUENCE4args{CsaSessionid: w.id})}
	head := []byte{0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0x40, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	tx := &transaction.Transaction{Connection: c, From: 1, Backward: true, XID: 7, Program: 0x40000000, Version: 1, Procedure: 1, Named: true}
	tx.Call.Payload = a.Append(head)
	tx.Call.PayloadLength = len(tx.Call.Payload)
	tx.Call.First = w.ref()
	tx.Call.Last = tx.Call.First
	w.v.Set(tx)
	w.r.Transaction(&w.v)
}

// TestSlots: the server takes slots away, all are in use, and a call follows.
func TestSlots(t *testing.T) {
	w := newWorld(t)
	c := connection(1, "192.0.2.2", "192.0.2.1")
	w.answer(w.call(c, 0, 0), 7)
	a, b := w.call(c, 0, 0), w.call(c, 1, 1)
	w.answer(a, 1) // now there are two, and one is in use
	a = w.call(c, 0, 1)
	w.now += 5000 // both are in use
	w.answer(b, 1)
	w.now += 2000
	b = w.call(c, 1, 1) // it may have waited
	w.answer(a, 1)
	w.answer(b, 1)
	s := w.r.Report(nil).Sessions[0]
	if x := s.Slots; x.Target != 2 || x.Least != 2 || x.Used != 2 || x.Most != 2 || x.After != 1 || x.Soonest != 3000 || x.Full != 7000 {
		t.Errorf("%+v", x)
	}
	if s.Captured || s.Calls != 5 || s.Granted != nil {
		t.Errorf("%+v", s)
	}
}

// TestDataServer: a layout of type files sends I/O to a data server over RDMA, by another handle.
func TestDataServer(t *testing.T) {
	w := newWorld(t)
	mds, ds := connection(1, "192.0.2.2", "192.0.2.1"), connection(2, "192.0.2.2", "192.0.2.9")
	file, data := []byte("file at the metadata server"), []byte("handle at the data server")
	device := [16]byte{7}
	layout := &nfs4.Nfsv41FileLayout4{NflDeviceid: device, NflFhList: [][]byte{data}}
	tx := w.call(mds, 0, 0, op(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: file}), op(nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{LogaLayoutType: 1, LogaIomode: 2}))
	x := nfs4.Layout4{LoLength: 1 << 20, LoIomode: 2}
	x.LoContent.Type, x.LoContent.Body = nfs4.LAYOUT4_NFSV4_1_FILES, layout.Append(nil)
	w.answer(tx, 7, op(nfs4.OP_PUTFH, &nfs4.Status4res{}), op(nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4res{LogrResok4: nfs4.LAYOUTGET4resok{LogrLayout: []nfs4.Layout4{x}}}))
	addr := &nfs4.Nfsv41FileLayoutDsAddr4{NfldaStripeIndices: []uint32{0}, NfldaMultipathDsList: [][]nfs4.Netaddr4{
		{{NaRNetid: []byte("rdma"), NaRAddr: []byte("192.0.2.9.78.81")}, {NaRNetid: []byte("rdma6"), NaRAddr: []byte("fd00::9.78.81")}, {NaRNetid: []byte("tcp"), NaRAddr: []byte("no address")}},
	}}
	tx = w.call(mds, 0, 0, op(nfs4.OP_GETDEVICEINFO, &nfs4.GETDEVICEINFO4args{GdiaDeviceId: device, GdiaLayoutType: 1}))
	info := &nfs4.GETDEVICEINFO4res{}
	info.GdirResok4.GdirDeviceAddr.Type, info.GdirResok4.GdirDeviceAddr.Body = nfs4.LAYOUT4_NFSV4_1_FILES, addr.Append(nil)
	w.answer(tx, 7, op(nfs4.OP_GETDEVICEINFO, info))
	for range 3 {
		tx = w.call(ds, 0, 0, op(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: data}), op(nfs4.OP_READ, &nfs4.READ4args{Count: 64}))
		w.answer(tx, 7, op(nfs4.OP_PUTFH, &nfs4.Status4res{}), op(nfs4.OP_READ, &nfs4.READ4res{Resok4: nfs4.READ4resok{Data: xdr.Data{Inline: make([]byte, 64), Length: 64}}}))
	}
	rep := w.r.Report(nil)
	if len(rep.Layouts) != 1 || len(rep.Devices) != 1 {
		t.Fatalf("%+v", rep)
	}
	l := rep.Layouts[0]
	if l.Type != "files" || l.Write != 1 || l.Server != "192.0.2.1" || len(l.IO) != 1 || *l.IO[0] != (session.DataIO{Server: "192.0.2.9", Reads: 3, Read: 192}) {
		t.Errorf("%+v", l)
	}
	if d := rep.Devices[0]; strings.Join(d.Addresses, ", ") != "rdma 192.0.2.9:20049, rdma6 [fd00::9]:20049, tcp no address" || d.ID[:2] != "07" {
		t.Errorf("%+v", d)
	}
}

// TestBounded: memory is bounded, whatever peers send, and the excess is counted.
func TestBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 1100 {
		w.id = [16]byte{byte(i), byte(i >> 8), 9}
		w.answer(w.call(connection(i, "192.0.2.2", "192.0.2.1"), 0xffffffff, 0xffffffff), 0xffffffff)
	}
	rep := w.r.Report(nil)
	if len(rep.Sessions) != 1024 || rep.Beyond.Sessions != 1100-1024 || rep.Beyond.Slots == 0 {
		t.Errorf("%d sessions, %+v", len(rep.Sessions), rep.Beyond)
	}
	w = newWorld(t)
	for i := range 100 {
		w.answer(w.call(connection(i, "192.0.2.2", "192.0.2.1"), uint32(i), 0), 3)
	}
	rep = w.r.Report(nil)
	if len(rep.Sessions[0].Connections) != 64 || rep.Beyond.Connections != 100-64 {
		t.Errorf("%d connections, %+v", len(rep.Sessions[0].Connections), rep.Beyond)
	}
}
