package scrub

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

// Reader reads the packets of another capture.Reader as a Scrubber copies them, so that nothing that is made of them tells more.
type Reader struct {
	capture.Reader
	scrubber *Scrubber
	decoder  *decode.Decoder
	in       capture.Batch
	out      *capture.Batch
	err      error
}

// NewReader makes a Reader. opt.Write is not used; dec says how packets are decoded to be copied.
func NewReader(r capture.Reader, opt Options, dec decode.Options) *Reader {
	x := &Reader{Reader: r}
	opt.Write = func(p *capture.Packet) error {
		x.out.Append(*p)
		return nil
	}
	x.scrubber = New(opt)
	x.decoder = x.scrubber.decoder(dec)
	return x
}

// Read implements capture.Reader.
func (x *Reader) Read(b *capture.Batch) error {
	b.Reset()
	for x.out = b; len(b.Packets) == 0; {
		if x.err != nil {
			return x.err
		}
		x.err = x.scrubber.step(x.Reader, x.decoder, &x.in)
	}
	return nil
}

// Stats are the counts so far.
func (x *Reader) Stats() Stats { return x.scrubber.Stats() }
