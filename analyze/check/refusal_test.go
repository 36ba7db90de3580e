package check

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestRefusalReaction: a finding about a NAK says that the connection ended only if it did.
func TestRefusalReaction(t *testing.T) {
	const ends, goesOn = "the connection ends", "the connection goes on all the same"
	refused := func(s *scene) {
		s.write(client, memoryAt(9, 100), make([]byte, 100))
		s.nak(server, roce.NAKRemoteAccess)
	}
	for _, test := range []struct {
		name string
		play func(s *scene)
		want []string
	}{
		{"the last", refused, []string{ends}},
		{"disconnected", func(s *scene) { refused(s); s.disconnect(client) }, []string{ends}},
		{"acknowledged behind it", func(s *scene) { refused(s); s.bare(client, 3); s.ack(server) }, []string{goesOn}},
		{"two", func(s *scene) { refused(s); s.bare(client, 3); s.ack(server); refused(s) }, []string{goesOn, ends}},
		{"more than are kept", func(s *scene) {
			for range maxFatal + 1 {
				refused(s)
				s.bare(client, 1)
				s.ack(server)
			}
		}, append([]string{""}, slices.Repeat([]string{goesOn}, maxFatal)...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			s.strange()
			test.play(s)
			var got []string
			for _, f := range s.run(RFC8166).findings {
				if f.Rule.id == ruleFatalNAK {
					got = append(got, f.Reaction)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestRefusalMerged: what waits for the end of a connection is not lost if it turns out to be part of another one.
func TestRefusalMerged(t *testing.T) {
	var found int
	c := New(Options{Rules: All()}, func(f *Finding) {
		if f.Rule.id == ruleFatalNAK {
			found++
		}
	})
	a, b := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}, &rdma.Connection{ID: 2, Fabric: rdma.RoCEv2}
	c.Event(b, 0, rdma.EventNAKAccess, 7, rdma.Ref{Number: 3, Time: 3})
	b.MergedInto = a
	c.Merged(a, 0, b, 0)
	c.Closed(a)
	c.Finish()
	if found != 1 {
		t.Errorf("%d findings, want 1", found)
	}
}
