package check

// Binding is a requirement on the users of an upper-layer binding, or one that RFC 8166 places on all
// bindings.
type Binding struct {
	Title  string
	Source string
	Text   string
}

// Bindings are the requirements B1, B2, …, starting at index 0. They come from RFC 8166 and RFC 8267;
// docs/reference/checks.md explains how they relate to the summary in Lever 2016.
var Bindings = [...]Binding{
	{"only eligible items are reduced", "RFC 8166, section 6.1; RFC 8267, sections 2, 3 and 5",
		"A sender moves only items that the binding declares eligible through a Read or Write chunk."},
	{"a chunk is one item", "RFC 8166, section 3.4.4.4",
		"Apart from Position-Zero and Reply chunks, a chunk holds exactly one whole XDR item."},
	{"padding stays out of the stream", "RFC 8166, section 3.4.4.4",
		"The padding of an item that travels in a chunk is not left behind in the message."},
	{"padding stays out of chunks", "RFC 8166, sections 3.4.5.2 and 3.4.6.2",
		"Chunks are as long as their item: requesters should leave no room for padding, and responders write none."},
	{"Write chunks fit the largest result", "RFC 8166, sections 3.4.6 and 4.3.2.2",
		"A Write chunk has room for the longest result that the call may have."},
	{"an offered Write chunk is used", "RFC 8166, sections 4.3.2 and 6.1",
		"Eligible results go into the Write chunks that the call offers, the first result into the first chunk."},
	{"no Write list without an eligible result", "RFC 8166, section 4.3.2; RFC 8267",
		"A call offers at most one Write chunk per result that can be eligible, and no Write list if none can."},
	{"unused Write chunks come back empty", "RFC 8166, section 4.3.2.2",
		"A Write chunk that holds no result is returned with the same number of segments, all of length 0."},
	{"empty Write chunks mean inline", "RFC 8166, section 4.3.2.3",
		"A Write chunk without segments asks for the result inline and is returned unchanged."},
	{"there is room for the longest reply", "RFC 8166, sections 4.3.3 and 6.2",
		"A call whose reply may not fit inline offers a Reply chunk that is long enough."},
	{"violations of eligibility are refused", "RFC 8166, sections 6.1 and 4.5.2",
		"A responder does not execute a call whose chunks violate the binding."},
	{"protected bodies are not reduced", "RFC 8166, section 8.2; RFC 2203, section 5.3.2",
		"With RPCSEC_GSS integrity or privacy the body is one opaque item in which nothing is eligible."},
}
