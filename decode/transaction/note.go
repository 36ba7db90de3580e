package transaction

import (
	"iter"
	"slices"
	"strconv"
	"time"
)

// Note is a remark on a transaction: why it is incomplete, or what is odd about
// it. Kind says what, the other fields are its arguments; each kind names those
// that it has. Notes are equal (==) if they say the same.
type Note struct {
	Kind NoteKind
	Part NotePart // the message or chunk that it is about
	// Window is the sequence window of a security context.
	Window uint32
	N      uint64 // a number of the kind: bytes, nanoseconds, a connection, a packet
	Of     uint64 // the number that N is compared with
	Why    string // the reason as another layer gave it
}

// NoteKind is what a Note says, without its arguments.
type NoteKind uint8

// Kinds of notes, with their arguments. Their codes (NoteKind.Code) are part of
// the machine output and never change.
const (
	// How messages were matched.
	CallRepeated         NoteKind = iota + 1 // the call was sent again, with the same XID
	XIDReused                                // another call with the same XID came before the reply
	SecuredAgain                             // the call was sent again before the reply, with another sequence number of RPCSEC_GSS
	SecuredCopy                              // the call was sent before, with another sequence number of RPCSEC_GSS
	AssumedCall                              // taken for a call, but too little of it was captured to be sure
	AssumedReply                             // taken for a reply without a call, but too little of it was captured to be sure
	AssumedByLength                          // only the XID was captured; taken for a call or reply by its length
	TakenForReply                            // what was taken for the reply proved to be a call
	ReplyRepeated                            // the reply came again, with the same content
	ReplyRepeatedOther                       // the reply came again before the end, with other content
	SecondReply                              // a reply to an XID that was answered before, with other content
	ResentOn                                 // the call was sent again after a reconnect, on connection N
	ResentFrom                               // the call was sent first on connection N, before a reconnect
	ReplyStampedEarlier                      // the reply's timestamp is N nanoseconds before the call's
	ReplyFirstSameTime                       // the reply was captured before the call, both with one timestamp
	ReplyFirst                               // the reply was captured before the call, but has the later timestamp
	ConnectionEnded                          // the connection ended before the reply; Why says how
	CallRefused                              // packet N ended the connection before the call was acknowledged; Why says how
	CallNotAcknowledged                      // the connection ended before the call was acknowledged; Why says how
	ReplyRefused                             // packet N ended the connection before the reply was acknowledged; Why says how
	ReplyNotAcknowledged                     // the connection ended before the reply was acknowledged; Why says how
	LastCall                                 // no other call came between this one and the end of the connection

	// What the tracker's limits have cut short.
	GivenUpCalls        // too many calls are open
	GivenUpMemory       // open calls hold too much memory
	MessageNotKept      // only the beginning of the message was kept, for lack of memory
	SegmentsLimit       // the chunk lists have more segments than are followed
	NotAssembledMemory  // a chunk was not assembled, for lack of memory
	NotAssembledTooLong // a chunk was not assembled, since it is longer than the limit

	// What the capture lacks, or contradicts itself about.
	MessageCut      // N of Of bytes of Part were captured
	HeaderCut       // the capture ends within the transport header
	HeaderMalformed // the transport header is malformed; Why says how
	ChunkIncomplete // N of Of bytes of Part were captured
	ReadsUnplaced   // as ChunkIncomplete, and Read Responses came that could not be placed
	SequenceRestart // packet sequence numbers contradicted the connection
	SegmentsDoubted // TCP segments contradicted the connection
	BytesDiffer     // bytes of the connection were sent again with other values
	RecordMark      // the record mark of the call claims N bytes, and later calls lie within these
	UDPLength       // a UDP length of N contradicts the IP packet
	MPARejected     // the MPA Request was rejected, and the connection goes on
	MPARevision     // the MPA frame had revision N
	MarkersMissing  // MPA markers were asked for, and are not there
	MarkersUnasked  // MPA markers are there, and were not asked for

	// What the peers did with their chunks.
	PositionZeroInline // RDMA_MSG with a Position-Zero Read chunk
	NotPulled          // the responder did not read the Read list, as far as the capture shows
	ReplyNotRead       // the requester did not read the reply's chunks, as far as the capture shows
	DoneNotSeen        // no RDMA_DONE for a reply with Read chunks
	BeyondSegment      // an RDMA operation went beyond the end of its segment
	WrittenBeyondReply // N bytes were written to Part, of which the reply counts Of
	UsedAgain          // an RDMA operation used memory of the call that another one had used
	ReplyUnoffered     // the reply counts N bytes in segments of Write chunks that the call did not offer

	// Security contexts of Kerberos (RFC 2203), with a keytab.
	KRB5NoVerifier          // the call has no verifier of its context
	KRB5Verifier            // the verifier of Part is wrong; Why says how
	KRB5Body                // the body of Part could not be opened; Why says how
	KRB5Unverified          // Part was cut by the capture: decrypted without its checksum
	KRB5ContextClosed       // the keys of the context are not known; Why says why
	KRB5ContextUnknown      // the creation of the context was not captured
	KRB5ContextForgotten    // the same, or the context was forgotten for lack of memory
	KRB5ContextDestroyed    // the context was destroyed in packet N
	KRB5SequenceTooHigh     // the sequence number N is beyond Of, the highest one
	KRB5SequenceReused      // the sequence number N was used before
	KRB5SequenceBelowWindow // the sequence number N is below Window, which ends at Of

	endOfKinds
)

// NotePart is what a Note is about.
type NotePart uint8

// Parts of a transaction, as notes name them.
const (
	PartCall NotePart = iota + 1
	PartReply
	PartReadList
	PartPositionZero      // of the call
	PartWriteChunk        // one chunk of the Write list
	PartReplyChunk        // the Reply chunk
	PartReplyReads        // all Read chunks of a reply
	PartReplyPositionZero // of a reply
)

var partNames = [...]string{
	PartCall: "call", PartReply: "reply", PartReadList: "Read list", PartPositionZero: "Position-Zero Read chunk",
	PartWriteChunk: "Write chunk", PartReplyChunk: "Reply chunk",
	PartReplyReads: "reply's chunks", PartReplyPositionZero: "reply's Position-Zero Read chunk",
}

func (p NotePart) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return ""
}

// noteTexts holds the code of each kind, and its sentence: that is format with
// the arguments in place of verbs. See Note.Append.
var noteTexts = [endOfKinds]struct{ code, format string }{
	CallRepeated:        {"call_repeated", "call sent again with the same XID"},
	XIDReused:           {"xid_reused", "XID used again for another call"},
	SecuredAgain:        {"gss_sent_again", "call sent again with another sequence number of RPCSEC_GSS: the reply is with the last copy"},
	SecuredCopy:         {"gss_copy", "call was sent before with another sequence number of RPCSEC_GSS"},
	AssumedCall:         {"assumed_call", "taken for a call: the capture holds too little of it"},
	AssumedReply:        {"assumed_reply", "taken for a reply without its call: the capture holds too little of it"},
	AssumedByLength:     {"assumed_by_length", "taken for a call or reply by its length: the capture holds no more of it than the XID"},
	TakenForReply:       {"taken_for_reply", "what was taken for the reply is a call with the same XID"},
	ReplyRepeated:       {"reply_repeated", "reply sent again"},
	ReplyRepeatedOther:  {"reply_repeated_other", "reply sent again with other content: the first one is shown"},
	SecondReply:         {"second_reply", "another reply to this XID, with other content"},
	ResentOn:            {"resent_on", "XID sent again after reconnect: on connection %n"},
	ResentFrom:          {"resent_from", "XID sent again after reconnect: first on connection %n"},
	ReplyStampedEarlier: {"reply_stamped_earlier", "reply stamped %t before its call: no latency"},
	ReplyFirstSameTime:  {"reply_first_same_time", "reply captured before its call, with the same timestamp: no latency"},
	ReplyFirst:          {"reply_first", "reply captured before its call, but stamped after it"},
	ConnectionEnded:     {"connection_ended", "no reply before the connection ended: %w"},
	CallRefused:         {"call_refused", "call refused in packet %n: %w"},
	CallNotAcknowledged: {"call_not_acknowledged", "call not acknowledged before the connection ended: %w"},
	ReplyRefused:        {"reply_refused", "reply refused in packet %n: %w"},

	ReplyNotAcknowledged: {"reply_not_acknowledged", "reply not acknowledged before the connection ended: %w"},
	LastCall:             {"last_call", "the last call before the connection ended"},

	GivenUpCalls:        {"given_up_calls", "given up: too many open calls"},
	GivenUpMemory:       {"given_up_memory", "given up: open calls hold too much memory"},
	MessageNotKept:      {"message_not_kept", "message not kept whole: memory limit reached"},
	SegmentsLimit:       {"segments_limit", "chunk lists longer than the limit: not all segments followed"},
	NotAssembledMemory:  {"not_assembled_memory", "chunk not assembled: memory limit reached"},
	NotAssembledTooLong: {"not_assembled_too_long", "chunk not assembled: longer than the limit"},

	MessageCut:      {"message_cut", "%p cut by the capture: %n of %o bytes"},
	HeaderCut:       {"header_cut", "transport header cut by the capture"},
	HeaderMalformed: {"header_malformed", "transport header malformed: %w"},
	ChunkIncomplete: {"chunk_incomplete", "%p: %n of %o bytes captured"},
	ReadsUnplaced:   {"reads_unplaced", "%p: %n of %o bytes captured: Read Responses came that could not be placed"},
	SequenceRestart: {"sequence_restart", "packet sequence numbers contradicted what was known of the connection: taken up anew"},
	SegmentsDoubted: {"segments_doubted", "TCP segments contradicted the connection, which went on: not taken for its end or for another one"},
	BytesDiffer:     {"bytes_differ", "bytes of the connection were sent again with other values: the first ones are shown"},
	RecordMark:      {"record_mark", "the call's record mark claims %n bytes, but the server has answered a call within these: it ends before that"},
	UDPLength:       {"udp_length", "a UDP length of %n contradicts the length of the IP packet, which counts"},
	MPARejected:     {"mpa_rejected", "the MPA Request was rejected, but the connection goes on"},
	MPARevision:     {"mpa_revision", "MPA revision %n is not defined: decoded like one that is"},
	MarkersMissing:  {"mpa_markers_missing", "the setup asks for MPA markers, but there are none"},
	MarkersUnasked:  {"mpa_markers_unasked", "there are MPA markers, but the setup does not ask for them"},

	PositionZeroInline: {"position_zero_inline", "RDMA_MSG with a Position-Zero Read chunk"},
	NotPulled:          {"not_pulled", "Read list not pulled by the responder, or its Reads are not in the capture"},
	ReplyNotRead:       {"reply_not_read", "reply's chunks not read by the requester, or its Reads are not in the capture"},
	DoneNotSeen:        {"done_not_seen", "RDMA_DONE not seen"},
	BeyondSegment:      {"beyond_segment", "RDMA operation beyond the end of its segment"},
	UsedAgain:          {"used_again", "RDMA operation on memory of the call that was used before: not taken for a part of the transaction"},
	WrittenBeyondReply: {"written_beyond_reply", "%p: %n bytes written, %o bytes by the reply"},
	ReplyUnoffered:     {"reply_unoffered", "reply says that %n bytes were written to segments that the call did not offer"},

	KRB5NoVerifier:          {"krb5_no_verifier", "krb5: the call has no verifier of its context"},
	KRB5Verifier:            {"krb5_verifier", "krb5: verifier of the %p: %w"},
	KRB5Body:                {"krb5_body", "krb5: body of the %p: %w"},
	KRB5Unverified:          {"krb5_unverified", "krb5: %p: cut by the capture: decrypted without its checksum"},
	KRB5ContextClosed:       {"krb5_context_closed", "krb5: %w"},
	KRB5ContextUnknown:      {"krb5_context_unknown", "krb5: the creation of the context was not captured: its keys are not known"},
	KRB5ContextForgotten:    {"krb5_context_forgotten", "krb5: the creation of the context was not captured, or the context was forgotten for lack of memory: its keys are not known"},
	KRB5ContextDestroyed:    {"krb5_context_destroyed", "krb5: the context was destroyed in packet %n"},
	KRB5SequenceTooHigh:     {"krb5_sequence_too_high", "krb5: sequence number %n is beyond %o"},
	KRB5SequenceReused:      {"krb5_sequence_reused", "krb5: sequence number %n of the context was used before"},
	KRB5SequenceBelowWindow: {"krb5_sequence_below_window", "krb5: sequence number %n is below the window of the context (%s below %o): the server does not answer"},
}

// NoteKinds goes through all kinds.
func NoteKinds() iter.Seq[NoteKind] {
	return func(yield func(NoteKind) bool) {
		for k := CallRepeated; k < endOfKinds && yield(k); k++ {
		}
	}
}

// Code is the stable name of the kind in machine output, as "xid_reused"; empty
// for a kind that does not exist.
func (k NoteKind) Code() string {
	if k >= endOfKinds {
		return ""
	}
	return noteTexts[k].code
}

// String is the kind's code.
func (k NoteKind) String() string { return k.Code() }

// plain reports whether the sentence has no arguments.
func (k NoteKind) plain() bool {
	f := noteTexts[k].format
	for i := range len(f) {
		if f[i] == '%' {
			return false
		}
	}
	return true
}

// String is the note as a sentence, in plain English. It allocates only if the
// kind has arguments.
func (n Note) String() string {
	if n.Kind >= endOfKinds {
		return ""
	}
	if n.Kind.plain() {
		return noteTexts[n.Kind].format
	}
	return string(n.Append(nil))
}

// Append appends what String returns.
func (n Note) Append(b []byte) []byte {
	if n.Kind >= endOfKinds {
		return b
	}
	f := noteTexts[n.Kind].format
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b = append(b, f[i])
			continue
		}
		i++
		switch f[i] {
		case 'n':
			b = strconv.AppendUint(b, n.N, 10)
		case 'o':
			b = strconv.AppendUint(b, n.Of, 10)
		case 's':
			b = strconv.AppendUint(b, uint64(n.Window), 10)
		case 't':
			b = append(b, time.Duration(n.N).String()...)
		case 'p':
			b = append(b, n.Part.String()...)
		case 'w':
			b = append(b, n.Why...)
		}
	}
	return b
}

// maxNotes bounds the notes on one transaction: a malformed one may deserve
// thousands.
const maxNotes = 32

// Note adds a note, once. From a certain number on, notes are dropped.
//
// Notes are seldom. Kept out of line, their code does not push that of each transaction out of the first-level cache.
//
//go:noinline
func (t *Transaction) Note(n Note) {
	if len(t.Notes) >= maxNotes {
		return
	}
	if slices.Contains(t.Notes, n) {
		return
	}
	before := cap(t.Notes)
	t.Notes = append(t.Notes, n)
	t.noted += (cap(t.Notes)-before)*noteSize + len(n.Why)
}

// note adds a note without arguments.
//
//go:noinline
func (t *Transaction) note(k NoteKind) { t.Note(Note{Kind: k}) }
