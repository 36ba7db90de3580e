package fabric_test

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

const lossSample = "../../samples/rocev2-nfs3-loss.both.pcapng.zst"

// oneTap gives the packets of one capture point.
type oneTap struct {
	capture.Reader
	tap uint16
}

func (r *oneTap) Read(b *capture.Batch) error {
	err := r.Reader.Read(b)
	kept := b.Packets[:0]
	for _, p := range b.Packets {
		if p.Tap == r.tap {
			kept = append(kept, p)
		}
	}
	b.Packets = kept
	return err
}

func recordTap(t *testing.T, tap uint16) *found {
	t.Helper()
	r, err := capture.Open([]string{lossSample}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &found{}
	rec := fabric.New(fabric.Options{Episode: func(e *fabric.Episode) {
		kept := *e
		kept.Lost = append([]fabric.Range{}, e.Lost...)
		f.episodes = append(f.episodes, kept)
	}})
	d := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer()}}, func(*transaction.Transaction) {})
	if err := d.Run(&oneTap{r, tap}); err != nil {
		t.Fatal(err)
	}
	f.report = rec.Report(nil)
	return f
}

// TestLossSample finds the losses of a sample captured at the server, at the client, and at both:
// the episodes are the same, although each point misses different packets. The four NAKs are the
// four requests that the client counted as out of sequence (out_of_seq_request of rxe).
func TestLossSample(t *testing.T) {
	want := []string{
		"timeout 4732677 resent 1",
		"repeated read responses 4732804 resent 149",
		"sequence NAK 4733149 go-back-N resent 73",
		"sequence NAK 4733237 go-back-N resent 13",
		"sequence NAK 4733255 go-back-N resent 57",
		"sequence NAK 4733455 go-back-N resent 2",
		"timeout 4733538 resent 1",
	}
	for name, f := range map[string]*found{"server": recordTap(t, 0), "client": recordTap(t, 1), "both": record(t, lossSample)} {
		var got []string
		for i := range f.episodes {
			e := &f.episodes[i]
			line := e.Notice.String()
			if e.Responses {
				line += " responses"
			}
			line += fmt.Sprintf(" %d", e.Lost[0].Start)
			if e.Repeat == fabric.GoBackN {
				line += " go-back-N"
			}
			got = append(got, line+fmt.Sprintf(" resent %d", e.Resent))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, want)
		}
	}
}

// TestModel runs the model of hosts. Without losses there is no episode; with losses
// behind both capture points, each packet that the model sends again is one of an
// episode, and each NAK.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		for _, loss := range []rocetest.Loss{{}, {Far: 0.01}, {Far: 0.03, NotNow: 0.02}, {Near: 0.02, Middle: 0.01}} {
			m := rocetest.Make(rocetest.Config{
				Seed: seed, Calls: 60, CM: true, Loss: loss, Data: 30000,
				Kinds: []rocetest.Kind{rocetest.Small, rocetest.ReadData, rocetest.LongReply, rocetest.Unused},
			})
			s := newScene(fabric.Options{})
			tr := rocetest.Feeder{Tracker: newTracker(s.rec)}
			resent, naks, rnrs := uint64(0), uint32(0), uint32(0)
			for _, r := range m.Taps[0] {
				if r.Resent {
					resent++
				}
				if r.Opcode == roce.RCAcknowledge {
					if r.AETH.Syndrome.IsNAK() {
						naks++
					} else if r.AETH.Syndrome.IsRNR() {
						rnrs++
					}
				}
			}
			tr.All(m.Taps[0])
			var gotNAKs, gotRNRs uint32
			for i := range s.episodes {
				gotNAKs += s.episodes[i].NAKs
				gotRNRs += s.episodes[i].RNRs
				if _, ok := s.episodes[i].Duration(); !ok {
					t.Errorf("seed %d, %+v: not recovered from: %+v", seed, loss, s.episodes[i])
				}
			}
			total := s.rec.Totals()
			if gotNAKs != naks || gotRNRs != rnrs {
				t.Errorf("seed %d, %+v: %d NAKs and %d RNR NAKs in %d episodes, sent %d and %d", seed, loss, gotNAKs, gotRNRs, len(s.episodes), naks, rnrs)
			}
			switch {
			case loss == rocetest.Loss{}:
				if len(s.episodes) > 0 || total.Resent+total.Copies+total.Reordered+total.NotCaptured > 0 {
					t.Errorf("seed %d: %+v, %+v", seed, total, s.episodes)
				}
			case loss.Near == 0:
				if total.Resent+total.Copies != resent {
					t.Errorf("seed %d, %+v: %d packets sent again, %d said", seed, loss, resent, total.Resent+total.Copies)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestUnproven: without acknowledgements nothing says whether what the capture lacks was received.
func TestUnproven(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 0, roce.RCSendOnly, 3, 100)
	if r := s.done(); r.Totals.Unproven != 2 || r.Totals.NotCaptured != 0 || len(r.Notes) != 1 {
		t.Errorf("%+v, %q", r.Totals, r.Notes)
	}
}
