package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// decoderOf has a decoder for a Recorder.
func decoderOf(s *Recorder) *decode.Decoder {
	opt := decode.Options{Observers: []decode.Observer{s.Observer()}}
	opt.Transactions.Ended = s.Ended
	v := rpc.View{Names: &rpc.Names{}}
	return decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		s.Transaction(&v)
	})
}

func reportOf(t *testing.T, s *Recorder) string {
	t.Helper()
	b, err := json.Marshal(s.Report(nil))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(s.held, s.open.Len(), string(b))
}

// packetsOf are the packets of a capture.
func packetsOf(t *testing.T, file string) []capture.Packet {
	t.Helper()
	var all []capture.Packet
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for p, err := range capture.Packets(r) {
		if err != nil {
			t.Fatal(err)
		}
		x := *p
		x.Data = bytes.Clone(p.Data)
		all = append(all, x)
	}
	return all
}

// TestCut: what is found is the same if the state is saved and restored after any packet.
func TestCut(t *testing.T) {
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 37))
		for round := range 6 {
			var program []byte
			for range 8 * round {
				program = append(program, byte(rng.Uint32()))
			}
			packets := traffic.Apply(uint8(which), program)
			s := New(nil)
			d := decoderOf(s)
			traffic.Run(d, packets, 64)
			want := reportOf(t, s)
			for range sampled.Rounds(8) {
				s := New(nil)
				d := decoderOf(s)
				at := rng.IntN(len(packets) + 1)
				feed(d, packets[:at])
				var b bytes.Buffer
				if err := d.SaveState(&b, decode.StateOptions{Parts: []decode.StatePart{s}}); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(3) > 0 { // else it goes on itself
					s = New(nil)
					d = decoderOf(s)
					if _, err := d.LoadState(b.Bytes(), decode.StateOptions{Parts: []decode.StatePart{s}}); err != nil {
						t.Fatal(err)
					}
				}
				traffic.Run(d, packets[at:], 64)
				if got := reportOf(t, s); got != want {
					t.Fatalf("capture %d, program %v, cut at %d:\n%s\nnot cut\n%s", which, program, at, got, want)
				}
			}
		}
	}
}

// feed decodes packets that others follow.
func feed(d *decode.Decoder, packets []capture.Packet) {
	b := new(capture.Batch)
	for _, p := range packets {
		b.Append(p)
	}
	d.Batch(b)
}
