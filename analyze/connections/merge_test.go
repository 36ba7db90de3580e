package connections

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

const samples = "../../samples"

// oneTap is what one tap of a capture saw; -1 is all of them.
type oneTap struct {
	capture.Reader
	tap int
}

func (r *oneTap) Read(b *capture.Batch) error {
	for {
		if err := r.Reader.Read(b); err != nil || r.tap < 0 {
			return err
		}
		kept := b.Packets[:0]
		for _, p := range b.Packets {
			if int(p.Tap) == r.tap {
				p.Tap = 0
				kept = append(kept, p)
			}
		}
		if b.Packets = kept; len(kept) > 0 {
			return nil
		}
	}
}

// saved is the state of a sample, and what its list is as JSON.
func saved(tb testing.TB, name string, tap int) (*state.Unit, []byte) {
	tb.Helper()
	in, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	r, list := &Recorder{}, NewList(1<<20)
	defer list.Close()
	opt := decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
		r.Closed(c)
		if c.MergedInto == nil {
			list.Add(New(c))
		}
	}}}}
	d := decode.New(opt, func(tx *transaction.Transaction) { r.Transaction(tx) })
	if err := d.Run(&oneTap{in, tap}); err != nil {
		tb.Fatal(err)
	}
	a := d.Account()
	var b bytes.Buffer
	if err := JSON(&b, list, About{Account: account.New(&a)}, true); err != nil {
		tb.Fatal(err)
	}
	return state.NewUnit(r.Section([]string{name}, &a)), b.Bytes()
}

// merged is what is said of several states.
func merged(src state.Source) ([]byte, error) {
	list := NewList(1 << 20)
	defer list.Close()
	res, err := FromUnits(src, list)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := errors.Join(JSON(&b, list, About{Account: res.Account}, true), list.Err()); err != nil {
		return nil, err
	}
	return append(b.Bytes(), strings.Join(res.Notes, "\n")...), nil
}

// TestState: the list of a saved state is the list of the capture.
func TestState(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-rping.pcap", "rocev2-nfs3-meta.pcap.zst"} {
		u, want := saved(t, name, -1)
		got, err := merged(state.Units{u})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

// TestPartitions: in whatever order and groups states are merged, saved and read, some of them several times, the
// list is the same, byte for byte. A connection that two taps saw is listed once.
func TestPartitions(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	var units []*state.Unit
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-rping.pcap", "rocev2-nfs41-recall.pcap", "rocev2-nfs3-snaplen256.pcap.zst"} {
		u, _ := saved(t, name, -1)
		units = append(units, u)
	}
	const both = "rocev2-nfs3-loss.both.pcapng.zst"
	client, _ := saved(t, both, 1)
	server, atServer := saved(t, both, 0)
	units = append(units, client, server)
	random := rand.New(rand.NewPCG(7, 2))
	var want []byte
	for round := range rounds {
		files := make([]*state.File, 1+random.IntN(len(units)))
		for i := range files {
			files[i] = &state.File{}
		}
		for _, i := range random.Perm(len(units)) {
			files[random.IntN(len(files))].Add(units[i])
			files[random.IntN(len(files))].Add(units[i])
		}
		for len(files) > 1 {
			i, j := random.IntN(len(files)), random.IntN(len(files))
			if i == j {
				continue
			}
			files[i].Merge(files[j])
			if random.IntN(4) == 0 { // as another process would
				f, err := state.Decode(files[i].Append(nil), 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				files[i] = f
			}
			if random.IntN(4) > 0 { // otherwise delivered twice
				files[j] = files[len(files)-1]
				files = files[:len(files)-1]
			}
		}
		got, err := merged(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d:\n%s\nwant\n%s", round, got, want)
		}
	}
	// Those of the server are there once, with its numbers of packets.
	twice := bytes.Count(want, []byte(`"taps":2`))
	if twice == 0 || twice != bytes.Count(atServer, []byte(`"connection_key"`)) {
		t.Errorf("%d connections were seen by two taps, and the server saw %d", twice, bytes.Count(atServer, []byte(`"connection_key"`)))
	}
	for line := range bytes.Lines(atServer) {
		_, key, ok := bytes.Cut(line, []byte(`"connection_key":`))
		if !ok {
			continue
		}
		key, _, _ = bytes.Cut(key, []byte(`,"state"`))
		if bytes.Count(want, key) != 1 {
			t.Errorf("not as the server saw it: %s", key)
		}
	}
}

// FuzzState reads any bytes as a state. What can be read can be shown.
func FuzzState(f *testing.F) {
	whole, _ := saved(f, "rocev2-nfs3-longcall.pcap", -1)
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap"} {
		u, _ := saved(f, name, -1)
		f.Add(u.Section(SectionKind).Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		u := state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion, Body: body})
		if _, err := merged(state.Units{u}); err != nil {
			return
		}
		var both state.File
		both.Add(u, whole)
		list := NewList(1 << 20)
		defer list.Close()
		if _, err := FromUnits(&both, list); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(Table(&b, list), list.Each(func(c *Connection) { c.Detail(&b) })); err != nil {
			t.Fatal(err)
		}
	})
}
