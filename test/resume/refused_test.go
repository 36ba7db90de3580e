package resume

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestRefused restores states in decoders that they were not made for.
func TestRefused(t *testing.T) {
	packets := all(t, "../../samples/rocev2-nfs41-recall.pcap")
	none := func(*transaction.Transaction) {}
	d := decode.New(decode.Options{}, none)
	if err := d.Feed(&traffic.Reader{Packets: packets[:100], Batch: 10}); err != nil {
		t.Fatal(err)
	}
	keep := decode.StateOptions{Parts: []decode.StatePart{new(rpc.Names)}, Settings: []decode.StateNote{{Name: "site", Value: "a"}}}
	var state bytes.Buffer
	if err := d.SaveState(&state, keep); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opt  decode.Options
		keep decode.StateOptions
		want error
		text string
	}{
		{"the same", decode.Options{}, keep, nil, ""},
		{"more data", decode.Options{Transactions: transaction.Options{KeepData: true}}, keep, decode.ErrStateSettings,
			`Transactions.KeepData was "false" and is "true"`},
		{"observed", decode.Options{Observers: []decode.Observer{{Send: (&watch{}).Send}}}, keep, decode.ErrStateSettings, `Observers.Send was "not set" and is "set"`},
		{"no names", decode.Options{}, decode.StateOptions{Settings: keep.Settings}, decode.ErrStateSettings, `Parts was "*rpc.Names" and is ""`},
		{"another site", decode.Options{}, decode.StateOptions{Parts: keep.Parts}, decode.ErrStateSettings, "site was"},
	} {
		_, err := decode.New(c.opt, none).LoadState(state.Bytes(), c.keep)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := d.LoadState(state.Bytes(), keep); err == nil {
		t.Error("a decoder that has seen packets takes a state")
	}
}

// Two files of a series, each decoded by a process of its own.
func Example() {
	whole := all(nil, "../../samples/rocev2-nfs41-recall.pcap")
	var saved []byte
	process := func(r capture.Reader, last bool) {
		n := 0
		names := new(rpc.Names)
		d := decode.New(decode.Options{}, func(*transaction.Transaction) { n++ })
		keep := decode.StateOptions{Parts: []decode.StatePart{names}}
		if saved != nil {
			if _, err := d.LoadState(saved, keep); err != nil {
				panic(err)
			}
		}
		run := d.Feed
		if last {
			run = d.Run
		}
		if err := run(r); err != nil {
			panic(err)
		}
		fmt.Println(n, "transactions")
		if !last {
			var b bytes.Buffer
			if err := d.SaveState(&b, keep); err != nil {
				panic(err)
			}
			saved = b.Bytes()
		}
	}
	process(&traffic.Reader{Packets: whole[:130], Batch: 50}, false)
	process(&traffic.Reader{Packets: whole[130:], Batch: 50}, true)
	// Output:
	// 26 transactions
	// 24 transactions
}
