package text

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// shownLeaves are the names and values of all leaves.
func shownLeaves(f *fields) (list []string) {
	for _, n := range f.nodes {
		if n.leaf {
			list = append(list, n.name+" "+string(f.values[n.from:n.to]))
		}
	}
	return list
}

// TestUntilSamples cuts real arguments and results at each byte: what is shown is what the whole message says, in order, and the field behind
// it was not captured.
func TestUntilSamples(t *testing.T) {
	seen := map[string]int{}
	cuts, lost, shown := 0, 0, 0
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-longcall.pcap"} {
		each(t, name, func(v *rpc.View) {
			if v.Procedure == nil || v.Compound() {
				return
			}
			key := v.ProgramName() + v.ProcedureName() + v.Status()
			if seen[key]++; seen[key] > 1 {
				return
			}
			for _, m := range []xdr.Message{v.Args(), v.Result()} {
				if m == nil {
					continue
				}
				b := m.Append(nil)
				fresh := v.Procedure.NewArgs
				if m == v.Result() {
					fresh = v.Procedure.NewResult
				}
				show := func(b []byte, full int) ([]string, error) {
					var r xdr.Reader
					r.Reset(b, full)
					m := fresh()
					m.Decode(&r)
					var f fields
					f.reset(true)
					m.Walk(&f)
					f.until(r.Err())
					return shownLeaves(&f), r.Err()
				}
				whole, err := show(b, len(b))
				if err != nil { // data in a chunk
					continue
				}
				before := 0
				for n := range min(len(b), 1200) {
					part, err := show(b[:n], len(b))
					if err == nil {
						continue
					}
					cuts++
					for i, s := range part {
						if i >= len(whole) || s != whole[i] && !(i == len(part)-1 && strings.Contains(s, " bytes")) {
							t.Errorf("%s, %d of %d bytes (%v): shows %q", key, n, len(b), err, part[i:])
						}
					}
					before = max(before, len(part))
					lost += before - len(part) // zeros that may not have been sent
					shown += len(part)
				}
			}
		})
	}
	t.Logf("%d cuts of %d kinds of messages: %d fields shown, %d that a shorter cut shows are not", cuts, len(seen), shown, lost)
	if cuts < 3000 || lost > shown/20 {
		t.Errorf("%d cuts, %d fields shown, %d not", cuts, shown, lost)
	}
}

// TestUntil: fields that an error leaves zero are not shown, and structures without a field left are not either.
func TestUntil(t *testing.T) {
	attributes := func(v xdr.Visitor) {
		v.Bool("attributes_follow", true)
		v.Begin("attributes", "fattr3", -1)
		v.Uint("type", 0)
		v.Time("atime", 0, 0)
		v.End()
	}
	for _, c := range []struct {
		name string
		show message
		err  error
		want string
	}{
		{"whole", attributes, nil, "  attributes_follow true\n  attributes: type 0, atime 1970-01-01T00:00:00Z\n"},
		{"structure", attributes, &xdr.Error{Field: "type"}, "  attributes_follow true\n"},
		{"time", attributes, &xdr.Error{Field: "seconds"}, "  attributes_follow true\n  attributes: type 0\n"},
		{"field that is not shown", attributes, &xdr.Error{Field: "length"}, "  attributes_follow true\n  attributes: type 0\n"},
		{"nothing", func(v xdr.Visitor) {
			v.Begin("file", "nfs_fh3", -1)
			v.Bytes("data", nil)
			v.End()
			v.Uint("offset", 0)
		}, &xdr.Error{Field: "data"}, ""},
		{"zero before", func(v xdr.Visitor) { v.Enum("status", 0, "NFS3_OK"); v.Uint("count", 0) }, &xdr.Error{Field: "count"}, "  status NFS3_OK\n"},
		{"undefined value", func(v xdr.Visitor) { v.Enum("set_it", 9, ""); v.Uint("size", 0) }, &xdr.Error{Kind: xdr.Value, Field: "set_it"}, "  set_it 9\n"},
		{"zeros of which none failed", func(v xdr.Visitor) { v.Uint("a", 1); v.Uint("b", 0); v.Uint("c", 0) }, &xdr.Error{Field: "entries"}, "  a 1\n"},
	} {
		var tree Tree
		f := &tree.fields
		f.reset(false)
		c.show(f)
		f.until(c.err)
		if got := string(tree.layout(nil, f, 2)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestHeaderCut cuts RPC headers: an item that is not there is not shown as its zero, which would be a call with AUTH_NONE, or a success.
func TestHeaderCut(t *testing.T) {
	call := (&oncrpc.Call{XID: 7, RPCVersion: oncrpc.Version, Program: 100003, Version: 3, Procedure: 6, Cred: oncrpc.Auth{Flavor: 9, Body: []byte("credential..")}}).Append(nil)
	accepted := (&oncrpc.Reply{XID: 7, Verf: oncrpc.Auth{Flavor: 9, Body: []byte("verifier")}}).Append(nil)
	denied := (&oncrpc.Reply{XID: 7, Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: 99}).Append(nil)
	for _, c := range []struct {
		name        string
		call, reply []byte
		bytes       int
		want        string
	}{
		{"call", call, nil, 20, ""},
		{"call", call, nil, 24, "rpc: CALL, program 100003 (nfs) version 3, procedure 6 (READ)"},
		{"call", call, nil, 44, "rpc: CALL, program 100003 (nfs) version 3, procedure 6 (READ) credential: flavor 9, body 63726564656e7469616c2e2e"},
		{"call", call, nil, 52, "rpc: CALL, program 100003 (nfs) version 3, procedure 6 (READ) credential: flavor 9, body 63726564656e7469616c2e2e; verifier: AUTH_NONE"},
		{"accepted", nil, accepted, 0, ""},
		{"accepted", nil, accepted, 8, ""},
		{"accepted", nil, accepted, 12, "rpc: REPLY, MSG_ACCEPTED"},
		{"accepted", nil, accepted, 28, "rpc: REPLY, MSG_ACCEPTED verifier: flavor 9, body 7665726966696572"},
		{"accepted", nil, accepted, 32, "rpc: REPLY, MSG_ACCEPTED, SUCCESS verifier: flavor 9, body 7665726966696572"},
		{"denied", nil, denied, 12, "rpc: REPLY, MSG_DENIED"},
		{"denied", nil, denied, 16, "rpc: REPLY, MSG_DENIED, AUTH_ERROR"},
		{"denied", nil, denied, 20, "rpc: REPLY, MSG_DENIED, AUTH_ERROR, 99"},
	} {
		tx := &transaction.Transaction{Named: true, Program: 100003, Version: 3, Procedure: 6}
		var tree Tree
		var v rpc.View
		var b []byte
		if c.call != nil {
			tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, c.call[:c.bytes:c.bytes], len(c.call)
			v.SetAll(tx)
			b = tree.rpcCall(nil, &v)
		} else {
			tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 1, c.reply[:c.bytes:c.bytes], len(c.reply)
			v.SetAll(tx)
			b = tree.rpcReply(nil, &v)
		}
		got, _, _ := strings.Cut(string(b), "(cut by the capture")
		if got = strings.Join(strings.Fields(got), " "); got != c.want {
			t.Errorf("%d bytes of %s: %q, want %q", c.bytes, c.name, got, c.want)
		}
	}
}
