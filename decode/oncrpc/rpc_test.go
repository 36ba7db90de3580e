package oncrpc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Messages as sent by the Linux client and server and by rpcbind.
const (
	getportCall  = "9957550c0000000000000002000186a00000000200000003000000010000001c0000000000000006636c69656e7400000000000000000000000000000000000000000000000186a5000000030000000600000000"
	getportReply = "9957550c000000010000000000000000000000000000000000004e50"
	nullCall     = "aa689d8c0000000000000002000186a5000000030000000000000000000000000000000000000000"
	nullReply    = "aa689d8c0000000100000000000000000000000000000000"
	nlmCall      = "4c18b0420000000000000002000186b50000000400000002000000010000001c0000000000000006636c69656e74000000000000000000000000000000000000000000000000000435120000000000010000000100000006636c69656e740000000000100100010101000000430100005544d33e000000083040636c69656e7400000000000000000000000000000000000000000000000000000003"
	// krb5i: NFSv4.1 EXCHANGE_ID.
	integCall = "32d3f9770000000000000002000186a3000000040000000100000006000000180000000100000000000000010000000200000004010000000000000600000028040404ffffffffff000000002f04bb21823f6f6f06c95a6dd66fb730ea24082e0384bf31f3de8cd6000000f4000000010000000000000001000000010000002a18e9f98eb843975a0000001d4c696e7578204e465376342e3120636c69656e742e7269672e746573740000000000010100000001000000040000000002001e0000000000000000000000000400204130009820420000000000000000000000010000000a6b65726e656c2e6f726700000000005f4c696e757820362e31322e3131372b64656231322d616d64363420233120534d5020505245454d50545f44594e414d49432044656269616e20362e31322e3131372d317e646562313275312028323032362d31312d313429207838365f36340000000000000000000000000000000028040404ffffffffff000000002f04bb22ee41c750dc579001afd0351387c2329e6be3205abf0d4df7"
	// krb5p: NFSv4.1 CREATE_SESSION or the like; nobody can tell.
	privCall  = "592b7a060000000000000002000186a3000000040000000100000006000000180000000100000000000000010000000300000004020000000000000600000028040404ffffffffff000000002578656520956b44ff75608d8dffa246bc2d689f100235a89a71905600000094050406ff0000000000000000257865664b88ff45e5de4becd1745e45c80415806d7fabfa85b9288ee27d6d5c55a6063a886b1b6272e45f3a21fdab33482d658738da9c37a5b8eecc85306cf4b9bab767a3fb66556e2d658c7c5c4b9944726e51cf0439917f6790eee4bd107f73194a9dc929e3af83c4bf7330453f300889a51738e552a63f687e55eb60c1823d6a3469d1b5ed73"
	initReply = "bc72597b00000001000000000000000600000028040405ffffffffff00000000169cf49c063ef55226b122c95eaeadbab963d0b0bf65f7e8b51022bf0000000000000004010000000000000000000000000000800000009c60819906092a864886f71201020202006f8189308186a003020105a10302010fa27a3078a003020112a271046ff4cfbae1c8a87eb668c5bff88b28aad6368c022e40be87dc82192415970406a7de23dd68a5db60da99048d0e15228a3ddc6fb01ecd575ffd58d776a575d3dba5d2fcd92da06d6122f17a09746fa6b88db04a6f06e12e42add479e0b0c4e05caddccc871ae7589f006756ef643fed41"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCall(t *testing.T) {
	tests := []struct {
		name, msg         string
		xid, prog, v, p   uint32
		cred, verf        Flavor
		length            int
		kind              BodyKind
		offset, size      int
		sequence, sumSize int
	}{
		{"AUTH_SYS", getportCall, 0x9957550c, 100000, 2, 3, AuthSys, AuthNone, 68, BodyPlain, 68, 16, 0, 0},
		{"AUTH_NONE", nullCall, 0xaa689d8c, 100005, 3, 0, AuthNone, AuthNone, 40, BodyPlain, 40, 0, 0, 0},
		{"NLM", nlmCall, 0x4c18b042, 100021, 4, 2, AuthSys, AuthNone, 68, BodyPlain, 68, 88, 0, 0},
		{"integrity", integCall, 0x32d3f977, 100003, 4, 1, RPCSecGSS, RPCSecGSS, 104, BodyIntegrity, 112, 0xf0, 1, 40},
		{"privacy", privCall, 0x592b7a06, 100003, 4, 1, RPCSecGSS, RPCSecGSS, 104, BodyPrivacy, 108, 0x94, 0, 0},
	}
	var c Call
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.msg)
			if err := c.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			if c.XID != tt.xid || c.RPCVersion != 2 || c.Program != tt.prog || c.Version != tt.v || c.Procedure != tt.p {
				t.Errorf("%+v", c)
			}
			if c.Cred.Flavor != tt.cred || c.Verf.Flavor != tt.verf || c.Length != tt.length {
				t.Errorf("cred %v, verf %v, length %d", c.Cred.Flavor, c.Verf.Flavor, c.Length)
			}
			body := c.Body()
			if body.Kind != tt.kind || body.Offset != tt.offset || body.Length != tt.size || len(body.Data) != tt.size ||
				int(body.Sequence) != tt.sequence || len(body.Checksum) != tt.sumSize || body.Malformed {
				t.Errorf("body %+v", body)
			}
			if tt.size > 0 && &body.Data[0] != &b[body.Offset] {
				t.Error("data does not start at the offset")
			}
			if got := c.Append(nil); !bytes.Equal(got, b[:tt.length]) || c.Size() != tt.length {
				t.Errorf("Append = %x, Size = %d", got, c.Size())
			}
			m, ok := Peek(b)
			if !ok || m != (Message{tt.xid, TypeCall, tt.prog, tt.v, tt.p}) {
				t.Errorf("Peek = %+v, %v", m, ok)
			}
			if !Plausible(b, len(b)) || !PlausibleDatagram(b, len(b)) {
				t.Error("not plausible")
			}
			for n := range b {
				err := c.Decode(b[:n:n], len(b))
				if c.Cut != (n < tt.length) || (err == nil) == c.Cut {
					t.Fatalf("%d bytes: cut %v, %v", n, c.Cut, err)
				}
				if got := Plausible(b[:n:n], len(b)); got != (n >= minPlausible) {
					t.Fatalf("%d bytes: plausible %v", n, got)
				}
				if err == nil {
					if body := c.Body(); body.Malformed || body.Kind != tt.kind {
						t.Fatalf("%d bytes: body %+v", n, body)
					}
				}
			}
		})
	}
}

func TestReply(t *testing.T) {
	const verf = "0000000000000000"
	tests := []struct {
		name, msg, status string
		want              Reply
		length            int
	}{
		{"success", getportReply, "SUCCESS", Reply{XID: 0x9957550c}, 24},
		{"program", "0000000100000001" + "00000000" + verf + "00000001", "PROG_UNAVAIL", Reply{XID: 1, Accept: ProgUnavail}, 24},
		{"version", "0000000100000001" + "00000000" + verf + "00000002" + "0000000300000004", "PROG_MISMATCH",
			Reply{XID: 1, Accept: ProgMismatch, Low: 3, High: 4}, 32},
		{"procedure", "0000000100000001" + "00000000" + verf + "00000003", "PROC_UNAVAIL", Reply{XID: 1, Accept: ProcUnavail}, 24},
		{"arguments", "0000000100000001" + "00000000" + verf + "00000004", "GARBAGE_ARGS", Reply{XID: 1, Accept: GarbageArgs}, 24},
		{"system", "0000000100000001" + "00000000" + verf + "00000005", "SYSTEM_ERR", Reply{XID: 1, Accept: SystemErr}, 24},
		{"RPC version", "0000000100000001" + "00000001" + "00000000" + "0000000200000002", "RPC_MISMATCH",
			Reply{XID: 1, Stat: Denied, Reject: RPCMismatch, Low: 2, High: 2}, 24},
		{"credential", "0000000100000001" + "00000001" + "00000001" + "0000000d", "AUTH_ERROR",
			Reply{XID: 1, Stat: Denied, Reject: AuthError, AuthStat: AuthGSSCredProblem}, 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.msg)
			var r Reply
			if err := r.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			if r.Status() != tt.status || r.Length != tt.length || r.Succeeded() != (tt.status == "SUCCESS") {
				t.Errorf("status %q, length %d", r.Status(), r.Length)
			}
			if r.XID != tt.want.XID || r.Stat != tt.want.Stat || r.Accept != tt.want.Accept || r.Reject != tt.want.Reject ||
				r.AuthStat != tt.want.AuthStat || r.Low != tt.want.Low || r.High != tt.want.High {
				t.Errorf("%+v", r)
			}
			if got := r.Append(nil); !bytes.Equal(got, b[:tt.length]) || r.Size() != tt.length {
				t.Errorf("Append = %x, Size = %d", got, r.Size())
			}
			if m, ok := Peek(b); !ok || m != (Message{XID: tt.want.XID, Type: TypeReply}) {
				t.Errorf("Peek = %+v, %v", m, ok)
			}
			if !Plausible(b, len(b)) || !PlausibleDatagram(b, len(b)) {
				t.Error("not plausible")
			}
			body := r.Body(Protection{BodyPrivacy})
			if tt.status != "SUCCESS" && (body.Kind != BodyNone || body.Length != 0) {
				t.Errorf("body %+v", body)
			}
			for n := range tt.length {
				if err := r.Decode(b[:n:n], len(b)); err == nil || !r.Cut {
					t.Fatalf("%d bytes: cut %v, %v", n, r.Cut, err)
				}
			}
		})
	}
}

// The reply of a server to a context creation, and what a reply looks like
// under each protection.
func TestReplyBody(t *testing.T) {
	b := unhex(t, initReply)
	var r Reply
	if err := r.Decode(b, len(b)); err != nil {
		t.Fatal(err)
	}
	body := r.Body(Protection{BodyInit})
	var g GSSInitResult
	if body.Kind != BodyInit || !g.Decode(body.Data) || g.Major != 0 || g.Window != 128 || len(g.Handle) != 4 || len(g.Token) != 0x9c {
		t.Errorf("body %+v, result %+v", body, g)
	}
	if got := g.Append(nil); !bytes.Equal(got, body.Data) || g.Size() != len(got) {
		t.Errorf("Append = %x", got)
	}

	head := "00000001" + "00000001" + "00000000" + "0000000000000000" + "00000000"
	tests := []struct {
		name         string
		kind, found  BodyKind
		body         string
		offset, size int
		malformed    bool
	}{
		{"plain", BodyPlain, BodyPlain, "0000000100000002", 24, 8, false},
		{"integrity", BodyIntegrity, BodyIntegrity, "0000000c" + "00000007" + "0000000100000002" + "00000003" + "61626300", 32, 8, false},
		{"integrity, short sequence", BodyIntegrity, BodyIntegrity, "00000003" + "00000000", 24, 0, true},
		{"integrity, too long", BodyIntegrity, BodyIntegrity, "0000000c" + "00000007" + "00000001", 24, 0, true},
		{"integrity, empty", BodyIntegrity, BodyIntegrity, "", 24, 0, true},
		{"integrity, zeroed", BodyIntegrity, BodyUnknown, "0000000c" + "00000007" + "0000000000000000" + "00000003" + "00000000", 24, 24, false},
		{"privacy", BodyPrivacy, BodyPrivacy, "00000005" + "0102030405000000", 28, 5, false},
		{"privacy, too long", BodyPrivacy, BodyPrivacy, "ffffffff" + "01020304", 24, 0, true},
		{"unknown", BodyUnknown, BodyUnknown, "00000001", 24, 4, false},
	}
	for _, tt := range tests {
		b := unhex(t, head+tt.body)
		if err := r.Decode(b, len(b)); err != nil {
			t.Fatal(err)
		}
		body := r.Body(Protection{tt.kind})
		if body.Kind != tt.found || body.Offset != tt.offset || body.Length != tt.size || len(body.Data) != tt.size || body.Malformed != tt.malformed {
			t.Errorf("%s: %+v", tt.name, body)
		}
		if tt.name == "integrity" && (body.Sequence != 7 || string(body.Checksum) != "abc") {
			t.Errorf("%s: %+v", tt.name, body)
		}
	}
}

func TestProtection(t *testing.T) {
	gss := func(version uint32, proc GSSProc, service Service) Auth {
		c := GSSCred{Version: version, Proc: proc, Service: service, Handle: []byte{1, 2, 3, 4}}
		return Auth{RPCSecGSS, c.Append(nil)}
	}
	tests := []struct {
		cred Auth
		want BodyKind
	}{
		{Auth{}, BodyPlain},
		{Auth{Flavor: AuthTLS}, BodyPlain},
		{gss(1, GSSData, ServiceNone), BodyPlain},
		{gss(1, GSSData, ServiceIntegrity), BodyIntegrity},
		{gss(2, GSSData, ServicePrivacy), BodyPrivacy},
		{gss(2, GSSData, ServiceChannel), BodyPlain},
		{gss(1, GSSData, 9), BodyUnknown},
		{gss(1, GSSInit, ServicePrivacy), BodyInit},
		{gss(1, GSSContinueInit, 0), BodyInit},
		{gss(1, GSSDestroy, ServiceIntegrity), BodyPlain},
		{gss(2, GSSBindChannel, 0), BodyUnknown},
		{gss(7, GSSData, ServiceNone), BodyUnknown},
		{Auth{RPCSecGSS, []byte{0, 0, 0, 1}}, BodyUnknown},
	}
	for _, tt := range tests {
		c := Call{RPCVersion: 2, Cred: tt.cred}
		b := c.Append(nil)
		if err := c.Decode(b, len(b)); err != nil {
			t.Fatal(err)
		}
		if got := c.Protection().Kind(); got != tt.want {
			t.Errorf("%x: %v, want %v", tt.cred.Body, got, tt.want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	head := "000000010000000000000002" + "000186a30000000300000001"
	tests := []struct {
		name, msg string
		full      int
		kind      xdr.Kind
		offset    int
		field     string
		cut       bool
	}{
		{"reply", "0000000100000001" + head[16:], 0, xdr.Value, 4, "mtype", false},
		{"RPC version", strings.Replace(head, "00000002", "00000003", 1), 0, xdr.Value, 8, "rpcvers", false},
		{"no credential", head, 0, xdr.Short, 24, "cred", false},
		{"credential too long", head + "0000000100000191", 1000, xdr.Range, 28, "cred", false},
		{"credential longer than message", head + "0000000100000010", 0, xdr.Range, 28, "cred", false},
		{"credential cut", head + "0000000100000010", 200, xdr.Short, 32, "cred", true},
		{"verifier", head + "0000000000000000" + "00000000", 0, xdr.Short, 32, "verf", false},
	}
	for _, tt := range tests {
		var c Call
		err := c.Decode(unhex(t, tt.msg), tt.full)
		var e *xdr.Error
		if !errors.As(err, &e) || e.Kind != tt.kind || e.Offset != tt.offset || e.Field != tt.field || c.Cut != tt.cut {
			t.Errorf("%s: %v, cut %v", tt.name, err, c.Cut)
		}
	}
	for _, msg := range []string{
		"0000000100000000" + "00000000",
		"0000000100000001" + "00000002",
		"0000000100000001" + "00000000" + "0000000000000000" + "00000006",
		"0000000100000001" + "00000001" + "00000002",
	} {
		var r Reply
		var e *xdr.Error
		if err := r.Decode(unhex(t, msg), 0); !errors.As(err, &e) || e.Kind != xdr.Value {
			t.Errorf("%s: %v", msg, err)
		}
	}
}

func TestPlausibleRejects(t *testing.T) {
	call, reply := unhex(t, nlmCall), unhex(t, getportReply)
	change := func(b []byte, off int, v uint32) []byte {
		b = bytes.Clone(b)
		copy(b[off:], xdr.AppendUint32(nil, v))
		return b
	}
	for name, b := range map[string][]byte{
		"message type":    change(call, 4, 2),
		"RPC version":     change(call, 8, 3),
		"program":         change(call, 12, 99999),
		"reserved":        change(call, 12, 0x60000000),
		"version":         change(call, 16, 5000),
		"procedure":       change(call, 20, 5000),
		"flavor":          change(call, 24, 8),
		"credential":      change(call, 28, 401),
		"verifier":        change(call, 60, 99),
		"verifier length": change(call, 64, 400),
		"reply stat":      change(reply, 8, 2),
		"reply flavor":    change(reply, 12, 8),
		"reply verifier":  change(reply, 16, 100),
		"accept stat":     change(reply, 20, 6),
		"long denial":     change(reply, 8, 1),
		"zeros":           make([]byte, 100),
		"ones":            bytes.Repeat([]byte{0, 0, 0, 1}, 30),
		"short":           call[:19],
	} {
		if Plausible(b, len(b)) {
			t.Errorf("%s: plausible", name)
		}
	}
	if PlausibleDatagram(call[:len(call)-1], len(call)-1) {
		t.Error("a datagram of odd size is plausible")
	}
}

func TestSys(t *testing.T) {
	for n := 0; n <= maxGIDs; n++ {
		want := Sys{Stamp: 7, Machine: []byte("client"), UID: 1000, GID: 100, Count: n}
		for i := range n {
			want.GIDs[i] = uint32(i + 1)
		}
		b := want.Append(nil)
		var got Sys
		got.GIDs = want.GIDs
		if !got.Decode(b) || !reflect.DeepEqual(got, want) || want.Size() != len(b) {
			t.Errorf("%d groups: %+v", n, got)
		}
		for i := range b {
			if got.Decode(b[:i:i]) {
				t.Errorf("%d groups, %d bytes: decoded", n, i)
			}
		}
	}
	var s Sys
	if s.Decode(unhex(t, "00000000"+"00000000"+"00000000"+"00000000"+"00000011"+strings.Repeat("00000001", 17))) {
		t.Error("17 groups decoded")
	}
	if s.Decode(append(unhex(t, "0000000000000100"), make([]byte, 300)...)) {
		t.Error("a name of 256 bytes decoded")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		TypeCall: "CALL", TypeReply: "REPLY", MsgType(2): "",
		Accepted: "MSG_ACCEPTED", Denied: "MSG_DENIED",
		Success: "SUCCESS", SystemErr: "SYSTEM_ERR", AcceptStat(6): "",
		RPCMismatch: "RPC_MISMATCH", AuthError: "AUTH_ERROR", RejectStat(2): "",
		AuthOK: "AUTH_OK", AuthFailed: "AUTH_FAILED", AuthGSSCredProblem: "RPCSEC_GSS_CREDPROBLEM",
		AuthGSSCtxProblem: "RPCSEC_GSS_CTXPROBLEM", AuthStat(15): "",
		AuthNone: "AUTH_NONE", AuthDH: "AUTH_DH", RPCSecGSS: "RPCSEC_GSS", AuthTLS: "AUTH_TLS", Flavor(8): "",
		PseudoKrb5: "RPC_AUTH_GSS_KRB5", PseudoKrbI: "RPC_AUTH_GSS_KRB5I", PseudoKrbP: "RPC_AUTH_GSS_KRB5P",
		GSSData: "RPCSEC_GSS_DATA", GSSBindChannel: "RPCSEC_GSS_BIND_CHANNEL", GSSProc(7): "",
		ServiceNone: "rpc_gss_svc_none", ServicePrivacy: "rpc_gss_svc_privacy", Service(0): "", Service(5): "",
		BodyIntegrity: "integrity", BodyKind(200): "",
	} {
		if got.String() != want {
			t.Errorf("%#v: %q, want %q", got, got.String(), want)
		}
	}
	for v, want := range map[uint32]string{0: "GSS_S_COMPLETE", 1: "GSS_S_CONTINUE_NEEDED", 8 << 16: "GSS_S_NO_CONTEXT", 19 << 16: "", 1 << 24: ""} {
		if got := GSSMajorName(v); got != want {
			t.Errorf("%#x: %q, want %q", v, got, want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	call, integ, priv, reply := unhex(t, nlmCall), unhex(t, integCall), unhex(t, privCall), unhex(t, initReply)
	var c Call
	var r Reply
	var s Sys
	var g GSSInitResult
	out := make([]byte, 0, 1024)
	n := testing.AllocsPerRun(100, func() {
		if !Plausible(call, len(call)) || c.Decode(call, len(call)) != nil || !s.Decode(c.Cred.Body) {
			t.Fatal("call")
		}
		out = c.Append(out[:0])
		if c.Decode(integ, len(integ)) != nil || c.Body().Length != 0xf0 {
			t.Fatal("integrity")
		}
		if c.Decode(priv, len(priv)) != nil || c.Body().Length != 0x94 {
			t.Fatal("privacy")
		}
		if r.Decode(reply, len(reply)) != nil || !g.Decode(r.Body(Protection{BodyInit}).Data) {
			t.Fatal("reply")
		}
		if c.Decode(call[:30], len(call)) == nil {
			t.Fatal("cut")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{getportCall, getportReply, nullCall, nullReply, nlmCall, integCall, privCall, initReply} {
		f.Add(unhex(f, s), 0)
	}
	f.Add(unhex(f, nlmCall)[:50], 400)
	f.Fuzz(func(t *testing.T, b []byte, full int) {
		if full > 1<<30 {
			full = 1 << 30
		}
		m, peeked := Peek(b)
		plausible := Plausible(b, full)
		PlausibleDatagram(b, full)
		StartsRecord(b)
		var c, long Call
		for _, c := range []*Call{&c, &long} { // nothing of it may stay
			if err := c.Decode(unhex(t, integCall), 0); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Decode(b, full)
		if other := long.decode(b, max(full, len(b))); (err == nil) != (other == nil) || !reflect.DeepEqual(c, long) {
			t.Fatalf("%+v, %v\nthe long way %+v, %v", c, err, long, other)
		}
		if n := CallHeader(b); n != 0 && (err != nil || n != c.Length || c.Protection() != Protection{}) {
			t.Fatalf("a usual call with a header of %d bytes: %+v, %v", n, c, err)
		}
		if err == nil {
			if !peeked || m != (Message{c.XID, TypeCall, c.Program, c.Version, c.Procedure}) {
				t.Fatalf("Peek = %+v, %v", m, peeked)
			}
			check(t, b, c.Length, c.Size(), c.Append(nil), c.Body())
			c.Walk(nothing{})
			var s Sys
			if s.Decode(c.Cred.Body) && s.Count > maxGIDs {
				t.Fatal("too many groups")
			}
		} else if plausible && m.Type == TypeCall && !c.Cut {
			t.Fatalf("plausible, but %v", err)
		}
		var r, slow Reply
		for _, r := range []*Reply{&r, &slow} {
			if err := r.Decode(unhex(t, initReply), 0); err != nil {
				t.Fatal(err)
			}
		}
		err = r.Decode(b, full)
		if other := slow.decode(b, max(full, len(b))); (err == nil) != (other == nil) || !reflect.DeepEqual(r, slow) {
			t.Fatalf("%+v, %v\nthe long way %+v, %v", r, err, slow, other)
		}
		if n := SuccessHeader(b); n != 0 && (err != nil || n != r.Length || !r.Succeeded()) {
			t.Fatalf("a usual reply with a header of %d bytes: %+v, %v", n, r, err)
		}
		if err == nil {
			for k := BodyNone; k <= BodyUnknown; k++ {
				body := r.Body(Protection{k})
				check(t, b, r.Length, r.Size(), r.Append(nil), body)
				var g GSSInitResult
				g.Decode(body.Data)
				g.Walk(nothing{})
				body.Walk(nothing{})
			}
			r.Walk(nothing{})
		} else if plausible && m.Type == TypeReply && !r.Cut {
			t.Fatalf("plausible, but %v", err)
		}
	})
}

// check compares an encoded header with what it was decoded from, and looks
// at the limits of the body.
func check(t *testing.T, b []byte, length, size int, out []byte, body Body) {
	t.Helper()
	if size != length || len(out) != length {
		t.Fatalf("length %d, Size %d, Append %d", length, size, len(out))
	}
	var c Call
	var r Reply
	if c.Decode(out, 0) != nil && r.Decode(out, 0) != nil {
		t.Fatalf("%x does not decode", out)
	}
	if body.Offset < length || len(body.Data) > body.Length && body.Kind != BodyPlain {
		t.Fatalf("length %d, body %+v", length, body)
	}
}

// nothing is a Visitor that ignores all.
type nothing struct{}

func (nothing) Begin(string, string, int)    {}
func (nothing) End()                         {}
func (nothing) Uint(string, uint64)          {}
func (nothing) Int(string, int64)            {}
func (nothing) Bool(string, bool)            {}
func (nothing) Enum(string, uint32, string)  {}
func (nothing) Flags(string, uint64, string) {}
func (nothing) Bytes(string, []byte)         {}
func (nothing) String(string, []byte)        {}
func (nothing) Data(string, xdr.Data)        {}
func (nothing) Time(string, int64, uint32)   {}

func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct{ name, msg string }{{"sys", nlmCall}, {"gss", integCall}} {
		b.Run(bb.name, func(b *testing.B) {
			msg := unhex(b, bb.msg)
			var c Call
			b.ReportAllocs()
			for b.Loop() {
				if c.Decode(msg, len(msg)) != nil {
					b.Fatal("failed")
				}
			}
		})
	}
}

func BenchmarkReply(b *testing.B) {
	msg := unhex(b, getportReply)
	var r Reply
	b.ReportAllocs()
	for b.Loop() {
		if r.Decode(msg, len(msg)) != nil {
			b.Fatal("failed")
		}
	}
}

func BenchmarkPeek(b *testing.B) {
	msg := unhex(b, nlmCall)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Peek(msg); !ok {
			b.Fatal("failed")
		}
	}
}

func BenchmarkPlausible(b *testing.B) {
	msg := unhex(b, nlmCall)
	b.ReportAllocs()
	for b.Loop() {
		if !Plausible(msg, len(msg)) {
			b.Fatal("failed")
		}
	}
}
