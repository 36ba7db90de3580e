package onepass

import "github.com/rpcrdma/toolkit/decode"

// Parts is what a saved state of the Pass has besides the Decoder: give it to Decoder.SaveState after a Feed, and to
// Decoder.LoadState of a new Pass with the same Options.
func (p *Pass) Parts() []decode.StatePart {
	return append([]decode.StatePart{p.view.Names, p.report, p.check, p.conns}, p.parts...)
}
