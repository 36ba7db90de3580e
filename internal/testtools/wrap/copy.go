package wrap

import (
	"errors"
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/capture"
)

// Copy writes the packets of the Ethernet capture in, wrapped in the kind of that
// name, as a capture to out.
func Copy(name string, id uint32, in string, out io.Writer) (err error) {
	var kind *Kind
	for _, k := range Kinds(id) {
		if k.Name == name {
			kind = &k
		}
	}
	if kind == nil {
		return fmt.Errorf("no kind %q", name)
	}
	r, err := capture.Open([]string{in}, capture.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w := capture.NewWriter(out, capture.WriterOptions{Format: capture.Pcap, Link: kind.Link})
	x := New(*kind, id)
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		for i := range b.Packets {
			p := b.Packets[i]
			if p.Link != capture.LinkEthernet {
				return fmt.Errorf("packet %d is no Ethernet frame", p.Number)
			}
			data, wire := x.Frame(p.Data, int(p.Length))
			p.Data, p.Length, p.Link = data, uint32(wire), kind.Link
			if err := w.Write(&p); err != nil {
				return err
			}
		}
	}
}
