package rpc

import "github.com/rpcrdma/toolkit/decode/oncrpc"

// Unwrapper opens what RPCSEC_GSS has wrapped (RFC 2203). View.Set calls it for
// each transaction with such a credential, once the headers are decoded and the
// bodies delimited, and before arguments and results are decoded.
//
// Views of one capture share an Unwrapper, also on different goroutines. It is
// called for one transaction as often as Views look at it.
type Unwrapper interface {
	Unwrap(v *View)
}

// Opening says what became of the wrapped body of a message.
type Opening uint8

// Results of opening a body.
const (
	NotOpened Opening = iota // not wrapped, not seen, or its key is not known
	Verified                 // integrity: the checksum is right
	Decrypted                // privacy: decrypted, and the checksum is right
	Prefix                   // privacy, cut by the capture: the beginning is decrypted; no checksum vouches for it
	Refused                  // the key is known, but the checksum is wrong or the token malformed
)

var openingNames = [...]string{"", "verified", "decrypted", "prefix", "refused"}

// String is the name that ndjson and filters use; empty for NotOpened.
func (o Opening) String() string {
	if int(o) < len(openingNames) {
		return openingNames[o]
	}
	return ""
}

// Opened is the wrapped body of a call or a reply after an Unwrapper has looked
// at it.
type Opened struct {
	How Opening
	// Data is the captured part of Length bytes of arguments or results, with
	// the sequence number before them taken off. Both are set for Decrypted and
	// Prefix only: what has integrity alone is in the Body.
	Data   []byte
	Length int
	// Sequence is that number, set with Data.
	Sequence uint32

	buffer []byte
}

// keepOpened is how large a buffer is kept for the next transaction.
const keepOpened = 1<<20 + 64<<10

// Buffer returns n bytes that belong to o until the next Set of the View.
func (o *Opened) Buffer(n int) []byte {
	if cap(o.buffer) < n {
		o.buffer = make([]byte, max(n, min(2*cap(o.buffer), keepOpened)))
	}
	return o.buffer[:n]
}

// opens reports whether there is an Unwrapper, or something left that one has opened before.
func (v *View) opens() bool {
	return v.Unwrap != nil || v.CallOpened.How|v.ReplyOpened.How != NotOpened || v.Principal != ""
}

// unwrap lets the Unwrapper look at the transaction.
func (v *View) unwrap() {
	v.CallOpened.reset()
	v.ReplyOpened.reset()
	v.Principal = ""
	if v.Unwrap == nil || v.CallErr != nil || v.call.Cred.Flavor != oncrpc.RPCSecGSS {
		return
	}
	v.call.BodyInto(&v.callBody)
	if v.ReplyErr == nil {
		v.reply.BodyInto(v.call.Protection(), &v.replyBody)
	}
	v.Unwrap.Unwrap(v)
}

func (o *Opened) reset() {
	if o.How == NotOpened {
		return
	}
	o.How, o.Data, o.Length = NotOpened, nil, 0
	if cap(o.buffer) > keepOpened {
		o.buffer = nil
	}
}

// Opening is what became of the wrapped bodies of the transaction: the worse of
// call and reply if both could be looked at.
func (v *View) Opening() Opening {
	return max(v.CallOpened.How, v.ReplyOpened.How)
}

// ArgsData is the bytes that the arguments are decoded from, and how many there
// were before the capture cut them.
func (v *View) ArgsData() ([]byte, int) { return opened(&v.callBody, &v.CallOpened) }

// ResultData is the same of the results.
func (v *View) ResultData() ([]byte, int) { return opened(&v.replyBody, &v.ReplyOpened) }

func opened(b *oncrpc.Body, o *Opened) ([]byte, int) {
	if b.Kind == oncrpc.BodyPrivacy && o.clear() {
		return o.Data, o.Length
	}
	return b.Data, b.Length
}

// clear reports whether an encrypted body was decrypted.
func (o *Opened) clear() bool { return o.How == Decrypted || o.How == Prefix }
