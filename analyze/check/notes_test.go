package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// texts are what is seen and what came of it, of the findings of a rule.
func (r result) texts(rule string) (out []string) {
	for _, f := range r.findings {
		if f.Rule.ID == rule {
			out = append(out, f.Seen+" > "+f.Reaction)
		}
	}
	return out
}

// What came of a recalled delegation.
func TestRecalled(t *testing.T) {
	const one, two = "delegation 1", "delegation 2"
	const seen = "recall of stateid 64656c65676174696f6e20"
	for _, test := range []struct {
		name string
		play func(*scene)
		want []string // parts, one for each finding
	}{
		{"returned", func(s *scene) { s.recall(one, 0); s.wait(3e6); s.giveBack(one, 0) },
			[]string{seen + "31, fh:1c0aa99d > DELEGRETURN after 3.008ms in frame 12, xid 00005003: NFS4_OK"}},
		{"not returned", func(s *scene) { s.recall(one, 0); s.small() },
			[]string{"> not returned after it in the capture"}},
		{"refused", func(s *scene) { s.recall(one, 10025); s.small() },
			[]string{"; the client answered NFS4ERR_BAD_STATEID > not returned"}},
		{"again", func(s *scene) { s.recall(one, 10008); s.recall(one, 0); s.giveBack(one, 0) },
			[]string{"; sent 2 times; the client answered NFS4ERR_DELAY, then NFS4_OK > DELEGRETURN after"}},
		{"failed", func(s *scene) { s.recall(one, 0); s.giveBack(one, 10008) },
			[]string{"> not returned after it in the capture; last DELEGRETURN after"}},
		{"failed first", func(s *scene) { s.recall(one, 0); s.giveBack(one, 10008); s.giveBack(one, 0) },
			[]string{": NFS4_OK"}},
		{"two", func(s *scene) { s.recall(one, 0); s.recall(two, 0); s.giveBack(two, 0) },
			[]string{"32, fh:", "31, fh:"}},
		{"twice", func(s *scene) {
			for range 2 {
				s.recall(one, 0)
				s.giveBack(one, 0)
			}
		}, []string{"NFS4_OK", "NFS4_OK"}},
		{"returned before", func(s *scene) { s.giveBack(one, 0) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			s.connect()
			s.small()
			test.play(s)
			got := s.run(RFC8166).texts("delegation-recalled")
			if len(got) != len(test.want) {
				t.Fatalf("%q", got)
			}
			for i := range got {
				if !strings.Contains(got[i], test.want[i]) {
					t.Errorf("%q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}

// A filter that holds for the callback only does not hide how it went on.
func TestRecalledMatch(t *testing.T) {
	s := newScene()
	s.connect()
	s.recall("delegation 1", 0)
	s.giveBack("delegation 1", 0)
	for _, backward := range []bool{true, false} {
		r := run(Options{Rules: All(), Match: func(v *rpc.View) bool { return v.Tx.Backward == backward }}, s.frames())
		got := r.texts("delegation-recalled")
		if backward && (len(got) != 1 || !strings.Contains(got[0], "DELEGRETURN")) || !backward && len(got) != 0 {
			t.Errorf("backward %v: %q", backward, got)
		}
	}
}

// Two servers in different networks, with equal addresses, may recall equal stateids at the same time.
func TestRecalledOfTenants(t *testing.T) {
	s := newScene()
	s.connect()
	s.recall("delegation 1", 0)
	s.giveBack("delegation 1", 0)
	var packets []capture.Packet
	for _, p := range s.frames() {
		for vni := range uint32(2) {
			kinds := wrap.Kinds(vni)
			w := wrap.New(kinds[slices.IndexFunc(kinds, func(k wrap.Kind) bool { return k.Name == "vxlan" })], vni)
			data, wire := w.Frame(p.Data, int(p.Length))
			wrapped := p
			wrapped.Data, wrapped.Length, wrapped.Number = bytes.Clone(data), uint32(wire), uint64(len(packets)+1)
			packets = append(packets, wrapped)
		}
	}
	got := run(Options{Rules: All()}, packets).texts("delegation-recalled")
	if len(got) != 2 || !strings.Contains(got[0], "DELEGRETURN") || !strings.Contains(got[1], "DELEGRETURN") {
		t.Errorf("%q", got)
	}
}

// Two servers in one network may recall equal stateids, too.
func TestRecalledOfServers(t *testing.T) {
	s := newScene()
	s.connect()
	s.recall("delegation 1", 0)
	s.giveBack("delegation 1", 0)
	var packets []capture.Packet
	hosts := []*fleetgen.Rewriter{fleetgen.NewRewriter(1), fleetgen.NewRewriter(2)}
	for _, p := range s.frames() {
		for _, h := range hosts {
			other := p
			other.Data, other.Number = bytes.Clone(p.Data), uint64(len(packets)+1)
			h.Packet(&other)
			packets = append(packets, other)
		}
	}
	got := run(Options{Rules: All()}, packets).texts("delegation-recalled")
	if len(got) != 2 || !strings.Contains(got[0], "DELEGRETURN") || !strings.Contains(got[1], "DELEGRETURN") {
		t.Errorf("%q", got)
	}
}

// Recalls that are remembered are bounded; those beyond are counted.
func TestManyRecalls(t *testing.T) {
	s := newScene()
	s.connect()
	s.small()
	const more = 5
	for i := range maxRecalls + more {
		s.recall(fmt.Sprintf("stateid %4d", i), 0)
	}
	r := s.run(RFC8166)
	n := r.check.Count(Lookup("delegation-recalled"))
	if n.Found != maxRecalls || n.NotJudged[Limit] != more {
		t.Errorf("%d found, %v not judged", n.Found, n.NotJudged)
	}
}

// Who keeps the inline threshold low, and how.
func TestSmallInline(t *testing.T) {
	for _, test := range []struct {
		mine, theirs []byte
		by           Party
		want         string // empty: nothing is found
	}{
		{private(4096, 4096, true), private(4096, 4096, true), Unknown, ""},
		{private(8192, 65536, true), private(4096, 16384, true), Unknown, ""},
		{private(1024, 4096, true), private(4096, 4096, true), Requester, "calls 1024 bytes, 192.0.2.2 by its private data > "},
		{private(4096, 4096, true), private(2048, 4096, true), Responder, "replies 2048 bytes, 192.0.2.1 by its private data > "},
		{private(4096, 4096, true), nil, Responder,
			"calls 1024 bytes, 192.0.2.1 for lack of private data; replies 1024 bytes, 192.0.2.1 for lack of private data > "},
		{private(1024, 4096, true), private(1024, 1024, true), Unknown,
			"calls 1024 bytes, 192.0.2.2 by its private data and 192.0.2.1 by its private data; " +
				"replies 1024 bytes, 192.0.2.1 by its private data > "},
	} {
		s := newScene()
		s.connectWith(test.mine, test.theirs)
		s.small()
		s.small()
		r := s.run(RFC8166)
		got := strings.Join(r.texts("small-inline-threshold"), "|")
		if got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		if got != "" && r.findings[0].By != test.by {
			t.Errorf("%s: by %v, want %v", got, r.findings[0].By, test.by)
		}
	}
}

// The setup has to be there whole.
func TestSmallInlineNotJudged(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"no setup":   func(s *scene) { s.recs = s.recs[3:] },
		"cut setup":  func(s *scene) { s.recs[0].Cut, s.recs[1].Cut = 200, 200 },
		"half setup": func(s *scene) { s.recs = s.recs[1:] },
	} {
		s := newScene()
		s.connectWith(private(1024, 1024, true), private(1024, 1024, true))
		s.small()
		change(s)
		n := s.run(RFC8166).check.Count(Lookup("small-inline-threshold"))
		if n.Found != 0 || n.NotJudged[NoSetup] != 1 {
			t.Errorf("%s: %d found, not judged %v", name, n.Found, n.NotJudged)
		}
	}
}

// Each service is reported once on each connection, with what it means.
func TestServices(t *testing.T) {
	s := newScene()
	gss := func(proc, service int) {
		h := s.next()
		cred := words(1, proc, 7, service, "ctx1")
		s.send(client, message(h, words(h.XID, 0, 2, nfsProgram, 3, 1, 6, string(cred), 6, "mic!", "body")))
		s.send(server, message(answer(h), words(h.XID, 1, 0, 6, "mic!", 0, "body")))
	}
	for range 2 {
		s.connect()
		gss(1, 3) // makes a context: the service means nothing
		for range 2 {
			gss(0, 3)
			gss(0, 1)
		}
		gss(0, 0)
		gss(0, 77)
		gss(0, 1<<30)
		s.disconnect(client)
		s.again()
	}
	got := s.run(RFC8166).texts("rpcsec-gss")
	want := []string{"rpc_gss_svc_privacy, bodies are encrypted", "rpc_gss_svc_none, authentication only"}
	if len(got) != 4 {
		t.Fatalf("%q", got)
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i%2]) {
			t.Errorf("%q, want %q", got[i], want[i%2])
		}
	}
}
