package check

// id is the index of a rule in the rules table.
type id int

const (
	ruleReadListOrder id = iota
	ruleDoneLost
	ruleDoneLate
	ruleRequesterRDMA
	ruleNomsgReplyWithoutChunk
	ruleNomsgWithoutChunk
	ruleMsgWithoutMessage
	ruleXIDMismatch
	ruleErrorFromRequester
	ruleHeaderInRDMA
	ruleReadChunkLength
	ruleLongCallNeedless
	ruleLongCallWithChunks
	ruleMsgWithPositionZero
	ruleMsgUsesReplyChunk
	rulePositionBeyond
	rulePositionUnaligned
	rulePadInStream
	rulePadWritten
	ruleWrittenLength
	ruleWriteChunkPad
	ruleReadChunkPad
	ruleWriteChunkIgnored
	ruleWriteListCount
	ruleWriteSegmentCount
	ruleWriteSegmentChanged
	ruleUnusedNotZero
	ruleUnusedEmpty
	ruleEmptyChunkUsed
	ruleChunkHole
	ruleReplyChunkChanged
	ruleReplyChunkNotReturned
	ruleCallOverInline
	ruleReplyOverInline
	ruleSmallInline
	ruleChunksRefused
	ruleReplyChunkNeedless
	ruleReplyChunkIgnored
	ruleCreditsExceeded
	ruleBeforeFirstReply
	ruleZeroGrant
	ruleGrantChanged
	ruleRNR
	ruleVersion
	ruleVersionAccepted
	ruleErrorFields
	ruleBackwardChunks
	ruleBackwardVersion
	ruleArgumentNotEligible
	ruleResultNotEligible
	ruleWriteListNeedless
	ruleWriteChunksTooMany
	ruleViolationAccepted
	ruleWriteChunkTooSmall
	ruleCallRefused
	ruleMSGP
	ruleMSGPRefused
	ruleDone
	ruleReplyReadList
	ruleHeaderMalformed
	ruleMalformedNotRefused
	ruleProtectedReduced
	ruleGSS
	ruleAccessAfterReply
	ruleAccessAfterInvalidate
	ruleAccessNotOffered
	ruleAccessWrongKind
	ruleAccessBeyond
	ruleAccessEmpty
	ruleHandleOpen
	ruleForeignInvalidate
	ruleInvalidateNotOffered
	ruleInvalidateUndeclared
	ruleHandleTwice
	ruleSegmentsOverlap
	ruleBytesMissing
	ruleReadNotPulled
	ruleFirstNotMTU
	rulePayloadOverMTU
	ruleOpcodeSequence
	ruleDMALength
	ruleFatalNAK
	ruleUnanswered
	ruleResentReconnect
	ruleResentSame
	ruleXIDReused
	ruleReplyTwice
	ruleRejected
	ruleClosed
	ruleRecalled
	ruleBadCRC
	ruleResent
	ruleGaps
	ruleNotGoneBack
	ruleNAKRepeated
	ruleAckWentBack
	ruleAckLate
	ruleMSN
	ruleNoCredit
	ruleReadDepth
	ruleCNPFormat
	ruleCNPRate
	ruleNoCNP
	ruleDSCP
	rulePriority
	ruleStalled
	ruleSegmentMalformed
	ruleStreamMSN
	ruleSegmentOrder
	ruleReadResponse
	ruleTerminate
	ruleMarker
	ruleFPDUSize
	ruleDepthAgreed
	ruleReplyRoom
	ruleReused
	ruleAckUnsent
	ruleNotResumed
	ruleCallbackUnbound
	ruleOneForm
	ruleReplyContradicts
	ruleCookies
	ruleChangeAttribute
	ruleTimeBack
	ruleAttributeMoved
	ruleNotAsked
	ruleUndefined
	ruleChannelDown
	rulePaused
	ruleOffload
	ruleNoAnswer
	ruleResults

	ruleCount
)

func init() {
	for i := range rules {
		rules[i].id = id(i)
	}
}

// sev lists the severities of a rule, one per profile, in the order of Profiles.
func sev(rfc8166, rfc5666, linux Severity) [len(Profiles)]Severity {
	return [len(Profiles)]Severity{rfc8166, rfc5666, linux}
}

func all(s Severity) [len(Profiles)]Severity { return sev(s, s, s) }

// rules is the table of all rules. Section numbers of Lever 2016 refer to
// draft-ietf-nfsv4-rfc5666-implementation-experience.
var rules = [ruleCount]Rule{
	ruleReadListOrder: {
		ID: "read-list-order", Number: "C3.1", Title: "Read list not in ascending order of positions",
		Source: "Callaghan 2003; RFC 8166, section 3.4.5", Severity: sev(Note, Note, Note), Needs: NeedCall,
		Text: "The prototype of 2003 required ascending offsets so that a receiver can decode in one pass. RFC 8166 fixes only the order of the segments within a chunk, but some receivers rely on more.",
	},
	ruleDoneLost: {
		ID: "done-lost", Number: "C6.1", Title: "RDMA_DONE never came",
		Source: "Callaghan 2003; RFC 5666", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedBefore,
		Text: "In the read-read model the responder keeps the result in exposed memory until the requester sends RDMA_DONE. Without RDMA_DONE it keeps the memory until a timeout.",
	},
	ruleDoneLate: {
		ID: "done-late", Number: "C6.2", Title: "RDMA_DONE came more than a second after the last Read",
		Source: "Callaghan 2003", Severity: all(Note), Needs: NeedCall | NeedReply | NeedOperations,
		Text: "The responder had to keep its buffers exposed for that long. A responder that frees them after a timeout breaks the connection when a Read arrives late.",
	},
	ruleRequesterRDMA: {
		ID: "requester-initiated-rdma", Number: "O2.1", Title: "the requester started an RDMA operation",
		Source: "RFC 8166, section 3.1; OSU-CISRC-4/06-TR43", Severity: sev(Error, Off, Error), Needs: NeedOperations,
		Text: "Only the responder of a call moves data with RDMA Read and Write. For a client to do so, the server must expose its memory. That is the read-read model, which RFC 8166 dropped.",
	},
	ruleNomsgReplyWithoutChunk: {
		ID: "nomsg-reply-without-reply-chunk", Number: "L1.1", Title: "RDMA_NOMSG reply though the call offered no Reply chunk",
		Source: "RFC 8166, sections 3.5.3 and 4.3.3; Lever 2016, section 2.5", Severity: all(Error), Needs: NeedCall | NeedReply, Bindings: []int{10},
		Text: "An RDMA_NOMSG reply means that the message is in the call's Reply chunk. Without that chunk there is no message.",
	},
	ruleNomsgWithoutChunk: {
		ID: "nomsg-without-chunk", Number: "L1.2", Title: "RDMA_NOMSG without a chunk that holds the message",
		Source: "RFC 8166, sections 4.2.4 and 4.5.2; Lever 2016, section 2.5", Severity: all(Error), Needs: NeedCall,
		Text: "An RDMA_NOMSG call needs a non-empty Position-Zero Read chunk; an RDMA_NOMSG reply needs a non-empty Reply chunk.",
	},
	ruleMsgWithoutMessage: {
		ID: "msg-without-message", Number: "L1.3", Title: "RDMA_MSG without a message",
		Source: "RFC 8166, section 4.2.4; Lever 2016, section 2.5", Severity: all(Error), Needs: NeedCall,
		Text: "The RPC message follows the header of an RDMA_MSG in the same Send.",
	},
	ruleXIDMismatch: {
		ID: "xid-mismatch", Number: "L1.4", Title: "XID of the header differs from that of the message",
		Source: "RFC 8166, section 4.2.1", Severity: all(Error), Needs: NeedOperations,
		Text: "The transport header repeats the XID at the start of the RPC message, wherever that message is. Receivers may rely on either.",
	},
	ruleErrorFromRequester: {
		ID: "error-from-requester", Number: "L1.5", Title: "RDMA_ERROR sent by the requester",
		Source: "RFC 8166, section 4.2.4", Severity: all(Error), Needs: NeedReply | NeedBefore,
		Text: "RDMA_ERROR answers a call. A peer that has not received a call must not send it, and the receiver drops it.",
	},
	ruleHeaderInRDMA: {
		ID: "header-in-rdma", Number: "L2.1", Title: "transport header moved by RDMA",
		Source: "RFC 8166, section 3.2; Lever 2016, section 3.1", Severity: all(Error), Needs: NeedOperations,
		Text: "Transport headers travel only in Sends. A Position-Zero or Reply chunk begins with the RPC message.",
	},
	ruleReadChunkLength: {
		ID: "read-chunk-not-one-item", Number: "L3.1", Title: "Read chunk is not exactly one item",
		Source: "RFC 8166, sections 3.4.4.4 and 3.4.5.2; Lever 2016, section 3.2", Severity: all(Error), Needs: NeedCall | NeedArguments, Bindings: []int{2},
		Text: "All read segments with the same position form one chunk. The chunk is as long as the item it replaces, with or without padding.",
	},
	ruleLongCallNeedless: {
		ID: "long-call-needless", Number: "L4.1", Title: "Position-Zero Read chunk for a call that fits inline",
		Source: "RFC 8166, section 3.5.3; Lever 2016, section 3.4", Severity: sev(Note, Warning, Note), Needs: NeedCall | NeedSetup,
		Text: "A long call costs a registration and an RDMA Read. RFC 8166 always allows it; RFC 5666 intended it for calls that exceed the inline threshold after reduction.",
	},
	ruleLongCallWithChunks: {
		ID: "long-call-with-chunks", Number: "L5.1", Title: "RDMA_NOMSG call with additional Read chunks",
		Source: "Lever 2016, section 3.5", Severity: all(Note), Needs: NeedCall,
		Text: "Legal: the call in the Position-Zero chunk is itself reduced. Few responders are tested with this, and Linux 6.1 servers are known to mishandle such lists.",
	},
	ruleMsgWithPositionZero: {
		ID: "msg-with-position-zero", Number: "L6.1", Title: "RDMA_MSG call with a Position-Zero Read chunk",
		Source: "RFC 8166, section 3.5.3; Lever 2016, section 3.6", Severity: all(Error), Needs: NeedCall,
		Text: "The message is either inline or in the chunk at position zero, not both. Positions count from the XID of the message, so nothing can be inserted before it.",
	},
	ruleMsgUsesReplyChunk: {
		ID: "msg-reply-uses-reply-chunk", Number: "L6.2", Title: "RDMA_MSG reply with a used Reply chunk",
		Source: "RFC 8166, section 4.3.3; Lever 2016, section 3.6", Severity: all(Error), Needs: NeedReply,
		Text: "The reply is either inline or in the Reply chunk. In an RDMA_MSG the returned Reply chunk has length 0.",
	},
	rulePositionBeyond: {
		ID: "position-beyond-message", Number: "L6.3", Title: "Read chunk at a position past the end of the message",
		Source: "RFC 8166, section 3.4.5; Lever 2016, section 3.6", Severity: all(Error), Needs: NeedCall,
		Text: "Positions count the bytes of the unreduced message, starting at its XID. A chunk cannot start past the end of the message.",
	},
	rulePositionUnaligned: {
		ID: "position-unaligned", Number: "L7.1", Title: "position is not a multiple of four",
		Source: "RFC 8166, section 3.4.5; Lever 2016, section 3.7", Severity: all(Error), Needs: NeedCall,
		Text: "XDR items begin at multiples of four bytes.",
	},
	rulePadInStream: {
		ID: "pad-in-stream", Number: "L7.2", Title: "padding of a chunk left in the message",
		Source: "RFC 8166, section 3.4.4.4; Lever 2016, section 3.7", Severity: all(Error), Needs: NeedCall, Bindings: []int{3},
		Text: "A sender that moves an item into a chunk also removes its padding from the message, so that what follows stays aligned.",
	},
	rulePadWritten: {
		ID: "write-chunk-pad-written", Number: "L8.1", Title: "padding written into a Write chunk",
		Source: "RFC 8166, section 3.4.6.2; Lever 2016, section 3.8", Severity: sev(Error, Warning, Error), Needs: NeedReply | NeedArguments, Bindings: []int{4},
		Text: "A responder writes no padding, even if there is room for it: the returned length counts the item alone.",
	},
	ruleWrittenLength: {
		ID: "write-chunk-not-one-item", Number: "L8.2", Title: "returned Write chunk is not as long as the result",
		Source: "RFC 8166, sections 3.4.4.4 and 3.4.6.2", Severity: all(Error), Needs: NeedReply | NeedArguments, Bindings: []int{2},
		Text: "The lengths of the returned segments add up to the length of the item, which the message gives.",
	},
	ruleWriteChunkPad: {
		ID: "write-chunk-pad-room", Number: "L8.3", Title: "Write chunk with room for padding",
		Source: "RFC 8166, section 3.4.6.2; Lever 2016, section 3.8", Severity: sev(Warning, Note, Warning), Needs: NeedCall | NeedArguments, Bindings: []int{4},
		Known: "Linux clients add a segment of 4 bytes to a Write chunk whose length is not a multiple of four",
		Text:  "No responder may write padding. Room for it costs a segment, and if that segment has its own handle, the responder cannot invalidate remotely.",
	},
	ruleReadChunkPad: {
		ID: "read-chunk-pad", Number: "L8.4", Title: "Read chunk that includes padding",
		Source: "RFC 8166, section 3.4.5.2; Lever 2016, section 3.8", Severity: sev(Warning, Note, Warning), Needs: NeedCall | NeedArguments, Bindings: []int{4},
		Text: "Requesters should leave padding out of Read chunks.",
	},
	ruleWriteChunkIgnored: {
		ID: "write-chunk-ignored", Number: "L9.1", Title: "eligible result inline although a Write chunk was offered",
		Source: "RFC 8166, sections 4.3.2, 4.3.2.2 and 6.1; Lever 2016, section 3.9", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments, Bindings: []int{6},
		Text: "A responder moves eligible results into the offered Write chunks, the first result into the first chunk. Otherwise the requester should fail the call.",
	},
	ruleWriteListCount: {
		ID: "write-list-changed", Number: "L9.2", Title: "Write list returned with a different number of chunks",
		Source: "RFC 8166, sections 3.4.6 and 4.3.2.2; Lever 2016, section 3.9", Severity: all(Error), Needs: NeedCall | NeedReply, Bindings: []int{8},
		Text: "The reply has as many Write chunks as the call, used or not.",
	},
	ruleWriteSegmentCount: {
		ID: "write-segments-changed", Number: "L9.3", Title: "Write chunk returned with a different number of segments",
		Source: "RFC 8166, section 3.4.6; Lever 2016, section 3.9", Severity: all(Error), Needs: NeedCall | NeedReply, Bindings: []int{8},
		Text: "A responder copies the segment count and all segments, and changes only the lengths.",
	},
	ruleWriteSegmentChanged: {
		ID: "write-segment-altered", Number: "L9.4", Title: "segment returned with a different handle or offset, or longer",
		Source: "RFC 8166, section 3.4.6; NFStest", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "A returned segment has the handle and offset of the segment in the call and is no longer than it.",
	},
	ruleUnusedNotZero: {
		ID: "unused-chunk-echoed", Number: "L9.5", Title: "unused chunk returned with its lengths",
		Source: "RFC 8166, section 4.3.2.2; Lever 2016, section 3.9", Severity: sev(Error, Warning, Error), Needs: NeedCall | NeedReply | NeedArguments, Bindings: []int{8},
		Text: "A chunk without a result is returned with lengths of 0. Some responders echo the offered lengths, which the requester takes for data.",
	},
	ruleUnusedEmpty: {
		ID: "unused-chunk-emptied", Number: "L9.6", Title: "unused chunk returned without segments",
		Source: "RFC 8166, section 4.3.2.2; Lever 2016, section 3.9", Severity: sev(Warning, Note, Warning), Needs: NeedCall | NeedReply, Bindings: []int{8},
		Text: "An unused chunk keeps its number of segments. Some responders return an empty array instead, which requesters understand.",
	},
	ruleEmptyChunkUsed: {
		ID: "empty-chunk-filled", Number: "L9.7", Title: "empty Write chunk not returned empty",
		Source: "RFC 8166, section 4.3.2.3", Severity: all(Error), Needs: NeedCall | NeedReply, Bindings: []int{9},
		Text: "A Write chunk without segments asks for the result inline and is returned without segments.",
	},
	ruleChunkHole: {
		ID: "chunk-not-contiguous", Number: "L9.8", Title: "chunk not filled in order",
		Source: "RFC 8166, section 3.4.6", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "A responder fills the segments of a Write or Reply chunk in order: no segment may be used after one that is not full.",
	},
	ruleReplyChunkChanged: {
		ID: "reply-chunk-altered", Number: "L9.9", Title: "Reply chunk returned with different segments",
		Source: "RFC 8166, section 4.3.3", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "A returned Reply chunk has the same segments as in the call, none of them longer.",
	},
	ruleReplyChunkNotReturned: {
		ID: "reply-chunk-not-returned", Number: "L9.10", Title: "offered Reply chunk missing from the reply",
		Source: "RFC 8166, section 4.3.3", Severity: sev(Warning, Note, Warning), Needs: NeedCall | NeedReply,
		Text: "A responder copies the Reply chunk into its reply, with lengths of 0 if it did not use the chunk.",
	},
	ruleCallOverInline: {
		ID: "call-over-inline", Number: "L10.1", Title: "call longer than the responder's inline threshold",
		Source: "RFC 8166, sections 3.3.2 and 3.3.3; RFC 8797, section 4.2; Lever 2016, sections 4.1 and 4.2", Severity: all(Error), Needs: NeedCall | NeedSetup,
		Text: "Transport header and inline message together must fit the smaller of the sender's send size and the receiver's receive size: 1024 bytes, unless the private data of the setup says more.",
	},
	ruleReplyOverInline: {
		ID: "reply-over-inline", Number: "L10.2", Title: "reply longer than the requester's inline threshold",
		Source: "RFC 8166, sections 3.3.2 and 3.3.3; RFC 8797, section 4.2; Lever 2016, sections 4.1 and 4.2", Severity: all(Error), Needs: NeedReply | NeedSetup,
		Text: "The same limit as for calls, in the other direction. Linux servers ignore the client's receive size: the client must offer a Reply chunk whenever one may be needed.",
	},
	ruleSmallInline: {
		ID: "small-inline-threshold", Number: "L10.3", Title: "inline threshold below what Linux offers",
		Source: "RFC 8166, section 3.3.2; RFC 8797, section 4.2; Lever 2016, section 4.1", Severity: all(Note), Needs: NeedSetup,
		Text: "Unless private data says more, 1024 bytes fit inline, including the transport header; Linux offers 4096. Anything longer needs a chunk, which costs a registration and RDMA operations. One finding covers both directions of a connection.",
	},
	ruleChunksRefused: {
		ID: "chunks-refused", Number: "L11.1", Title: "ERR_CHUNK for a call without a visible fault",
		Source: "RFC 8166, sections 4.3.3, 4.5.2 and 4.5.3; Lever 2016, section 4.3", Severity: all(Warning), Needs: NeedCall | NeedReply, Bindings: []int{10},
		Text: "Usually the reply did not fit: the call offered no Reply chunk, or one that was too short. The finding shows what was offered; only the responder knows what was needed.",
	},
	ruleReplyChunkNeedless: {
		ID: "reply-chunk-needless", Number: "L11.2", Title: "Reply chunk used for a reply that fits inline",
		Source: "RFC 8166, section 4.3.3; Lever 2016, section 4.3", Severity: all(Note), Needs: NeedCall | NeedReply | NeedSetup,
		Known: "Linux servers use every Reply chunk that they are offered",
		Text:  "Allowed, but it costs an RDMA Write. The finding shows the offered, used and inline bytes.",
	},
	ruleReplyChunkIgnored: {
		ID: "reply-chunk-ignored", Number: "L11.3", Title: "reply over the inline threshold although a Reply chunk was offered",
		Source: "RFC 8166, section 3.5.3", Severity: all(Error), Needs: NeedCall | NeedReply | NeedSetup,
		Text: "If the reduced reply exceeds the threshold, the responder must use the Reply chunk.",
	},
	ruleCreditsExceeded: {
		ID: "credits-exceeded", Number: "L12.1", Title: "more calls outstanding than credits granted",
		Source: "RFC 8166, section 3.3.1; Lever 2016, sections 4.4 and 4.5", Severity: all(Error), Needs: NeedCall | NeedBefore,
		Text: "There may be no more unanswered calls than the lower of the credits last requested and last granted.",
	},
	ruleBeforeFirstReply: {
		ID: "calls-before-first-reply", Number: "L12.2", Title: "second call before the first reply",
		Source: "RFC 8166, section 3.3.3; Lever 2016, section 4.4", Severity: all(Error), Needs: NeedCall | NeedSetup | NeedBefore,
		Text: "A new connection has one credit until the first reply grants more.",
	},
	ruleZeroGrant: {
		ID: "zero-grant", Number: "L12.3", Title: "no credits granted",
		Source: "RFC 8166, section 3.3.1; Lever 2016, section 4.4", Severity: all(Error), Needs: NeedReply,
		Text: "A grant of zero would stop the requester for good.",
	},
	ruleGrantChanged: {
		ID: "grant-changed", Number: "L12.4", Title: "the grant changed",
		Source: "RFC 8166, section 3.3.1; Lever 2016, section 4.5", Severity: all(Note), Needs: NeedReply | NeedBefore,
		Text: "Responders may change the grant. Known implementations grant a constant.",
	},
	ruleRNR: {
		ID: "rnr-nak", Number: "L12.5", Title: "receiver not ready",
		Source: "RFC 8166, section 3.3.1; Lever 2016, section 4.5; IBTA volume 1, section 9.7", Severity: all(Error), Needs: NeedPackets,
		Text: "A Send found no posted Receive. Either more calls arrived than were granted, or the receiver posted fewer Receives than it granted or than it has outstanding calls.",
	},
	ruleVersion: {
		ID: "version-not-1", Number: "L13.1", Title: "protocol version other than 1",
		Source: "RFC 8166, section 4.2.2; Lever 2016, section 4.6", Severity: all(Note), Needs: NeedCall,
		Text: "Version 0 is the prototype, version 2 a draft. Both are legal between peers that support them.",
	},
	ruleVersionAccepted: {
		ID: "version-not-refused", Number: "L13.2", Title: "unknown version not answered with ERR_VERS",
		Source: "RFC 8166, section 4.5.1; Lever 2016, section 4.6", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "A responder answers an unsupported version with RDMA_ERROR, ERR_VERS and the range of versions that it supports.",
	},
	ruleErrorFields: {
		ID: "error-fields", Number: "L13.3", Title: "RDMA_ERROR that does not match its call",
		Source: "RFC 8166, sections 4.5 and 4.5.1", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "RDMA_ERROR repeats the version of the call, and the range in ERR_VERS does not include that version.",
	},
	ruleBackwardChunks: {
		ID: "backward-with-chunks", Number: "L14.1", Title: "backward call that is not a short message",
		Source: "RFC 8167, section 5.3; Lever 2016, section 5.1", Severity: sev(Note, Off, Error), Needs: NeedCall,
		Text: "RFC 8167 allows chunks in the backward direction, but peers need not support them and may answer ERR_CHUNK. Linux neither sends nor accepts them.",
	},
	ruleBackwardVersion: {
		ID: "backward-version", Number: "L14.2", Title: "backward call with a different version than forward calls",
		Source: "RFC 8167, section 5.1", Severity: sev(Error, Off, Error), Needs: NeedCall | NeedBefore,
		Text: "Both directions of a connection use the same version of the protocol.",
	},
	ruleArgumentNotEligible: {
		ID: "argument-not-eligible", Number: "L15.1", Title: "Read chunk that does not replace an eligible argument",
		Source: "RFC 8166, section 6.1; RFC 8267; Lever 2016, section 6.2", Severity: all(Error), Needs: NeedCall | NeedArguments, Bindings: []int{1},
		Text: "Only the data of WRITE and the link text of SYMLINK (versions 2 and 3) and of CREATE (version 4) are eligible.",
	},
	ruleResultNotEligible: {
		ID: "result-not-eligible", Number: "L15.2", Title: "Write chunk used though no result is eligible",
		Source: "RFC 8166, section 6.1; RFC 8267; Lever 2016, section 6.2", Severity: all(Error), Needs: NeedReply | NeedArguments, Bindings: []int{1},
		Text: "Only the data of READ, the link text of READLINK and, in version 4.2, the data of READ_PLUS are eligible.",
	},
	ruleWriteListNeedless: {
		ID: "write-list-needless", Number: "L15.3", Title: "Write list offered for a call without eligible results",
		Source: "RFC 8166, section 4.3.2; RFC 8267; Lever 2016, section 6.2", Severity: all(Error), Needs: NeedCall | NeedArguments, Bindings: []int{7},
		Text: "The requester leaves the Write list empty if no result can be eligible.",
	},
	ruleWriteChunksTooMany: {
		ID: "write-chunks-too-many", Number: "L15.4", Title: "more Write chunks than eligible results",
		Source: "RFC 8166, section 4.3.2.1; RFC 8267", Severity: all(Warning), Needs: NeedCall | NeedArguments, Bindings: []int{7},
		Text: "A call offers at most one Write chunk for each result that can be eligible.",
	},
	ruleViolationAccepted: {
		ID: "violation-accepted", Number: "L15.5", Title: "call with an ineligible chunk was executed",
		Source: "RFC 8166, sections 6.1 and 4.5.2", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments, Bindings: []int{11},
		Text: "A responder must not process such a call: it answers GARBAGE_ARGS or ERR_CHUNK.",
	},
	ruleWriteChunkTooSmall: {
		ID: "write-chunk-too-small", Number: "L15.6", Title: "Write chunk shorter than the result may be",
		Source: "RFC 8166, sections 3.4.6 and 4.3.2.2", Severity: all(Error), Needs: NeedCall | NeedArguments, Bindings: []int{5},
		Text: "A READ that asks for n bytes offers a Write chunk of at least n bytes.",
	},
	ruleCallRefused: {
		ID: "call-refused", Number: "L16.1", Title: "GARBAGE_ARGS or SYSTEM_ERR for a call without a visible fault",
		Source: "RFC 8166, section 4.5.2; RFC 5531, section 9; Lever 2016, section 6.4", Severity: all(Warning), Needs: NeedCall | NeedReply,
		Text: "The responder could not decode the arguments, or failed, although header and chunks are valid. Clients tend to reconnect and send the same call again, in vain.",
	},
	ruleMSGP: {
		ID: "msgp-used", Number: "L17.1", Title: "RDMA_MSGP used",
		Source: "RFC 8166, sections 4.2.4 and 4.6; Lever 2016, section 7.1", Severity: sev(Error, Off, Error), Needs: NeedCall,
		Text: "RFC 8166 reserves RDMA_MSGP. No known implementation has ever sent it.",
	},
	ruleMSGPRefused: {
		ID: "msgp-refused", Number: "L17.2", Title: "RDMA_MSGP refused",
		Source: "RFC 8166, section 4.6; Lever 2016, section 7.1", Severity: all(Warning), Needs: NeedCall | NeedReply,
		Known: "Linux servers answer RDMA_MSGP with ERR_CHUNK",
		Text:  "Receivers should treat RDMA_MSGP as RDMA_MSG.",
	},
	ruleDone: {
		ID: "done-used", Number: "L17.3", Title: "RDMA_DONE used",
		Source: "RFC 8166, sections 4.2.4 and 4.6; Lever 2016, section 7.1", Severity: sev(Error, Off, Error), Needs: NeedPackets,
		Text: "RFC 8166 reserves RDMA_DONE; receivers ignore it.",
	},
	ruleReplyReadList: {
		ID: "reply-with-read-list", Number: "L17.4", Title: "reply with a Read list: the responder exposed memory",
		Source: "RFC 8166, section 4.3.1; Lever 2016, section 7.1; OSU-CISRC-4/06-TR43", Severity: sev(Error, Note, Error), Needs: NeedReply,
		Text: "Replies have an empty Read list. In the read-read model a client would read the result from the server's memory.",
	},
	ruleHeaderMalformed: {
		ID: "header-malformed", Number: "L18.1", Title: "Send that is not an RPC-over-RDMA message",
		Source: "RFC 8166, sections 4.5 and 4.5.2; Lever 2016, section 7.2", Severity: all(Error), Needs: NeedPackets,
		Text: "On a connection that carries RPC, every Send starts with a transport header, with or without a message after it.",
	},
	ruleMalformedNotRefused: {
		ID: "malformed-not-refused", Number: "L18.2", Title: "header that cannot be parsed not answered with ERR_CHUNK",
		Source: "RFC 8166, section 4.5.2; Lever 2016, section 7.2", Severity: all(Error), Needs: NeedBefore,
		Text: "A responder that knows the version but cannot parse the header answers RDMA_ERROR with ERR_CHUNK if the Send has at least 28 bytes.",
	},
	ruleProtectedReduced: {
		ID: "protected-body-reduced", Number: "L18.3", Title: "chunks for data under RPCSEC_GSS integrity or privacy",
		Source: "RFC 8166, section 8.2.2.3", Severity: sev(Error, Warning, Error), Needs: NeedCall, Bindings: []int{12},
		Text: "With integrity or privacy nothing may be reduced: no Write chunk, and no Read chunk other than the one at position zero.",
	},
	ruleGSS: {
		ID: "rpcsec-gss", Number: "L18.4", Title: "RPCSEC_GSS in use",
		Source: "RFC 8166, section 8.2.2.3; RFC 2203, section 5.3; Lever 2016, section 7.2", Severity: all(Note), Needs: NeedCall,
		Text: "Integrity and privacy wrap arguments and results, so no item in them is eligible for a chunk: READ and WRITE data travel inline, or with the whole message in a Position-Zero Read or Reply chunk. With privacy only the peers can read them. There is one finding per service on a connection, at the first call that uses it.",
	},
	ruleAccessAfterReply: {
		ID: "access-after-reply", Number: "L19.1", Title: "memory accessed after the reply",
		Source: "RFC 8166, sections 3.4.5.1, 4.4.1 and 8.1.3; Lever 2016, section 8", Severity: all(Error), Needs: NeedOperations | NeedBefore,
		Text: "Once it has replied, the responder may no longer access the memory that the call offered.",
	},
	ruleAccessAfterInvalidate: {
		ID: "access-after-invalidate", Number: "L19.2", Title: "memory accessed after its handle was invalidated",
		Source: "RFC 8166, section 8.1.3; RFC 8797, section 4.1; Lever 2016, section 8", Severity: all(Error), Needs: NeedOperations | NeedBefore,
		Text: "A handle named by a Send with Invalidate is invalid until it is registered again.",
	},
	ruleAccessNotOffered: {
		ID: "access-not-offered", Number: "L19.3", Title: "access to memory that no call offered",
		Source: "RFC 8166, sections 4.5.3 and 8.1; Lever 2016, section 8", Severity: all(Error), Needs: NeedOperations | NeedBefore,
		Text: "RDMA operations access only memory offered by an open call on the connection.",
	},
	ruleAccessWrongKind: {
		ID: "access-wrong-direction", Number: "L19.4", Title: "RDMA Write to a Read chunk, or Read from a Write chunk",
		Source: "RFC 8166, sections 3.4.5 and 3.4.6", Severity: all(Error), Needs: NeedOperations,
		Text: "Read chunks are read, Write and Reply chunks are written.",
	},
	ruleAccessBeyond: {
		ID: "access-beyond-segment", Number: "L19.5", Title: "RDMA operation beyond the end of its segment",
		Source: "RFC 8166, sections 3.4.3 and 4.5.3; NFStest", Severity: all(Error), Needs: NeedOperations,
		Text: "An operation stays within the memory described by its segment.",
	},
	ruleAccessEmpty: {
		ID: "access-empty-segment", Number: "L19.6", Title: "RDMA operation on a segment of length zero",
		Source: "NFStest; RFC 8166, section 3.4.3", Severity: all(Error), Needs: NeedOperations,
		Text: "Nothing can be moved to or from an empty segment.",
	},
	ruleHandleOpen: {
		ID: "memory-offered-twice", Number: "L19.7", Title: "memory offered by two open calls",
		Source: "RFC 8166, sections 4.4.1 and 8.1.3; Lever 2016, section 8", Severity: all(Warning), Needs: NeedCall | NeedBefore,
		Text: "A call that is still unanswered offers the same handle and addresses: a late Write for one call would corrupt the data of the other.",
	},
	ruleForeignInvalidate: {
		ID: "invalidate-foreign-handle", Number: "L19.8", Title: "invalidated handle that the call did not offer",
		Source: "RFC 8797, section 4.1; Lever 2016, section 8", Severity: all(Error), Needs: NeedCall | NeedReply,
		Text: "Send with Invalidate names one of the handles of its own call.",
	},
	ruleInvalidateNotOffered: {
		ID: "invalidate-not-offered", Number: "L19.9", Title: "remote invalidation that the requester does not support",
		Source: "RFC 8797, section 4.1; NFStest", Severity: all(Error), Needs: NeedReply | NeedSetup,
		Text: "Only a requester that set the R flag expects its handles to be invalidated.",
	},
	ruleInvalidateUndeclared: {
		ID: "invalidate-undeclared", Number: "L19.10", Title: "remote invalidation by a responder that did not declare it",
		Source: "RFC 8797, section 4.1", Severity: sev(Warning, Off, Warning), Needs: NeedReply | NeedSetup,
		Known: "Linux servers leave the R flag clear and invalidate if the client has set it",
		Text:  "Both peers must set the R flag before the responder may invalidate. A requester that set it is prepared, so no harm is done.",
	},
	ruleHandleTwice: {
		ID: "handle-not-unique", Number: "L19.11", Title: "two segments of a call with the same handle",
		Source: "NFStest", Severity: all(Note), Needs: NeedCall,
		Text: "Legal, and usual with persistent or all-physical registration, which exposes more memory than the call needs. Tools that match by handle alone fail.",
	},
	ruleSegmentsOverlap: {
		ID: "segments-overlap", Number: "L19.12", Title: "two segments of a call overlap",
		Source: "RFC 8166, section 3.4.3", Severity: all(Error), Needs: NeedCall,
		Text: "Memory that is written for a call may appear in only one segment.",
	},
	ruleBytesMissing: {
		ID: "chunk-bytes-missing", Number: "N1.1", Title: "fewer bytes written than the reply says",
		Source: "RFC 8166, section 3.4.6; NFStest", Severity: all(Error), Needs: NeedCall | NeedReply | NeedOperations,
		Text: "Before the responder sends the reply, it has written each returned segment from its start for the returned length.",
	},
	ruleReadNotPulled: {
		ID: "read-chunk-not-pulled", Number: "N1.2", Title: "call executed without reading its chunks",
		Source: "RFC 8166, section 3.4.5.1; NFStest", Severity: all(Error), Needs: NeedCall | NeedReply | NeedOperations | NeedArguments,
		Text: "A call cannot succeed unless the responder has read all of its arguments.",
	},
	ruleFirstNotMTU: {
		ID: "first-not-mtu", Number: "N2.1", Title: "First or Middle packet that is not full",
		Source: "IBTA volume 1, section 9.7; NFStest", Severity: all(Error), Needs: NeedPackets,
		Text: "All packets of a message except the last carry exactly the path MTU: the one from the connection request, or if that is unknown, a power of two from 256 to 4096 bytes.",
	},
	rulePayloadOverMTU: {
		ID: "payload-over-mtu", Number: "N2.2", Title: "Last or Only packet with more than the path MTU",
		Source: "IBTA volume 1, section 9.7", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "No packet carries more than the path MTU.",
	},
	ruleOpcodeSequence: {
		ID: "opcode-sequence", Number: "N2.3", Title: "packet that cannot follow the previous one",
		Source: "IBTA volume 1, section 9.7; NFStest", Severity: all(Error), Needs: NeedPackets,
		Text: "With consecutive PSNs, First and Middle are followed by Middle or Last of the same operation, and Middle and Last follow nothing else.",
	},
	ruleDMALength: {
		ID: "rdma-length", Number: "N2.4", Title: "RDMA Write or Read whose payload does not match its length",
		Source: "IBTA volume 1, section 9.7", Severity: all(Error), Needs: NeedPackets,
		Text: "The payload of all packets of an RDMA Write adds up to the length in its first packet, that of all responses to an RDMA Read to the length in the request.",
	},
	ruleFatalNAK: {
		ID: "operation-refused", Number: "N2.5", Title: "operation refused by the adapter",
		Source: "RFC 8166, section 4.5.3; IBTA volume 1, section 9.7; RFC 5040, section 4.8", Severity: all(Error), Needs: NeedPackets,
		Text: "A NAK for an invalid request, remote access or operational error, or a Terminate message that reports an error, ends the connection: a handle, address, length or opcode was wrong.",
	},
	ruleUnanswered: {
		ID: "call-unanswered", Number: "N3.1", Title: "call without a reply",
		Source: "RFC 8166, sections 4.5.4 and 4.5.5; NFStest", Severity: all(Note), Needs: NeedCall | NeedBefore,
		Text: "The connection ended before the reply. A responder ends the connection to signal that no reply will come; the requester then sends the call again on a new connection.",
	},
	ruleResentReconnect: {
		ID: "xid-resent-after-reconnect", Number: "N3.2", Title: "call sent again after a reconnect",
		Source: "RFC 8166, section 4.5.5; NFStest", Severity: all(Note), Needs: NeedCall,
		Text: "This is the correct recovery from a lost connection. The finding names the first connection.",
	},
	ruleResentSame: {
		ID: "xid-resent", Number: "N3.3", Title: "call sent again on the same connection",
		Source: "RFC 8881, section 2.9.2; RFC 7530, section 3.1.1", Severity: all(Warning), Needs: NeedCall,
		Text: "A reliable connection loses no calls. NFSv4 forbids retransmitting a call while the connection is up.",
	},
	ruleXIDReused: {
		ID: "xid-reused", Number: "N3.4", Title: "XID reused while its call was open",
		Source: "RFC 5531, section 9; RFC 8166, section 4.2.1", Severity: all(Error), Needs: NeedCall | NeedBefore,
		Text: "The reply could belong to either call.",
	},
	ruleReplyTwice: {
		ID: "reply-repeated", Number: "N3.5", Title: "second reply to a call",
		Source: "RFC 8166, section 3.3.1; NFStest", Severity: all(Error), Needs: NeedReply | NeedBefore,
		Text: "A requester posts one Receive per call for its reply.",
	},
	ruleRejected: {
		ID: "connection-rejected", Number: "N3.6", Title: "connection rejected",
		Source: "IBTA volume 1, chapter 12; RFC 5044, section 7.1", Severity: all(Note), Needs: NeedPackets,
		Text: "There was no listener, or the responder refused. Clients try again after a while. A refused TCP connection counts if its port is 20049 or that of an iWARP server in the capture; such a connection has no number.",
	},
	ruleClosed: {
		ID: "closed-by-responder", Number: "N3.7", Title: "the responder ended the connection",
		Source: "RFC 8166, sections 4.5.3 and 4.5.4; RFC 8167, section 5.4", Severity: all(Note), Needs: NeedPackets,
		Text: "Usually clients end connections that have been idle. A server that ends one is being stopped, or had to give up on a reply.",
	},
	ruleRecalled: {
		ID: "delegation-recalled", Number: "N3.8", Title: "the server recalled a delegation",
		Source: "RFC 8881, sections 10.4.4 and 20.2; RFC 7530, section 10.4.4", Severity: all(Note), Needs: NeedCall | NeedArguments,
		Text: "Another client wants the file and waits until this client returns the delegation with DELEGRETURN of the same stateid. Callbacks over TCP count if the delegation is returned over RDMA.",
	},
	ruleBadCRC: {
		ID: "bad-crc", Number: "N4.1", Title: "wrong ICRC or CRC32C",
		Source: "IBTA volume 1, section 7.8; RFC 5044, section 4.4", Severity: all(Warning), Needs: NeedPackets,
		Text: "Packets were damaged in transit or by the capture. One finding covers all packets that one side sent on a connection.",
	},
	ruleResent: {
		ID: "packets-resent", Number: "N4.2", Title: "packets seen again",
		Source: "IBTA volume 1, section 9.7; RFC 9293, section 3.8", Severity: all(Note), Needs: NeedPackets,
		Text: "The network or a receiver lost packets, which were sent again, or the network made copies: report --view fabric shows which. That may cost time but breaks no rule. One finding covers all packets that one side sent on a connection.",
	},
	ruleGaps: {
		ID: "capture-gaps", Number: "N4.3", Title: "packets missing from the capture",
		Source: "this toolkit", Severity: all(Note), Needs: NeedPackets,
		Text: "The packets were sent and received, but not captured. Rules that need them are not judged.",
	},
	ruleNotGoneBack: {
		ID: "nak-not-obeyed", Number: "F1.1", Title: "requester did not go back to the PSN that a NAK asked for",
		Source: "IBTA volume 1, section 9.7.5", Severity: all(Warning), Needs: NeedPackets,
		Text: "A NAK for a sequence error names the PSN that the responder expects. The responder drops all others, so that the requester has to begin with this one. Requesters that repeat only what was lost obey this, too.",
	},
	ruleNAKRepeated: {
		ID: "nak-repeated", Number: "F1.2", Title: "second NAK for the same PSN",
		Source: "IBTA volume 1, section 9.7.5", Severity: all(Warning), Needs: NeedPackets,
		Text: "A responder sends one NAK for a sequence error and then stays silent until the expected PSN comes; then it expects the next one. Each NAK makes the requester repeat everything. A copy that comes within a millisecond is the network's.",
	},
	ruleAckWentBack: {
		ID: "ack-went-back", Number: "F1.3", Title: "acknowledgement of an earlier PSN than before",
		Source: "IBTA volume 1, section 9.7.5", Severity: all(Warning), Needs: NeedPackets,
		Text: "A responder answers in the order of PSNs. Only a repeated request is acknowledged once more, with the newest PSN. One that was overtaken in the network counts fewer messages than the one before it.",
	},
	ruleAckLate: {
		ID: "ack-late", Number: "F2.1", Title: "acknowledgement after the requester's timeout",
		Source: "IBTA volume 1, sections 9.7.5 and 9.7.6", Severity: all(Warning), Needs: NeedPackets | NeedSetup,
		Text: "A responder may acknowledge several requests at once, but not so late that the requester, whose packet asked for an acknowledgement, gives up waiting and repeats it: 4.096 µs·2^n as in the connection request. Judged if nothing was sent in between.",
	},
	ruleMSN: {
		ID: "msn-wrong", Number: "F3.1", Title: "message sequence number that does not count the messages",
		Source: "IBTA volume 1, section 9.7.7", Severity: all(Warning), Needs: NeedPackets,
		Text: "The MSN in the AETH is the number of requests that the responder has completed. The requester finds out from it which of its work is done, and how many credits are left.",
	},
	ruleNoCredit: {
		ID: "send-without-credit", Number: "F3.2", Title: "Send without a credit",
		Source: "IBTA volume 1, section 9.7.7.2", Severity: all(Error), Needs: NeedPackets,
		Text: "A responder that grants credits says how many Receives it has. Beyond them, the requester may send a single request, in order to learn of new credits. All others may be refused with an RNR NAK.",
	},
	ruleReadDepth: {
		ID: "read-depth-exceeded", Number: "F4.1", Title: "more Reads at once than the peer announced",
		Source: "IBTA volume 1, section 9.7 and chapter 12; RFC 6581, section 9", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "Each side announces in the setup how many RDMA Reads and atomic operations it can answer at once (responder resources). It may refuse one more as an invalid request, which ends the connection. The finding waits until the oldest Read has been answered. Over iWARP, these are the IRD in the MPA frames of revision 2.",
	},
	ruleCNPFormat: {
		ID: "cnp-format", Number: "F5.1", Title: "CNP whose fields are not as they must be",
		Source: "RoCEv2 (IBTA annex A17), section A17.9.3", Severity: all(Warning), Needs: NeedPackets,
		Text: "A congestion notification packet has BECN set, FECN clear, PSN 0, neither the solicited event nor the acknowledge request bit, and 16 reserved bytes of zero. One finding covers all that one side sent on a connection.",
	},
	ruleCNPRate: {
		ID: "cnp-rate", Number: "F5.2", Title: "CNPs in quick succession",
		Source: "Zhu et al. 2015 (DCQCN), section 3.1", Severity: all(Note), Needs: NeedPackets,
		Text: "A receiver sends at most one CNP every 50 µs for a flow, so that the sender does not slow down twice for one queue. Adapters can be set to other intervals.",
	},
	ruleNoCNP: {
		ID: "ecn-without-cnp", Number: "F5.3", Title: "marked packets, and no CNP",
		Source: "RoCEv2 (IBTA annex A17), section A17.9.3; RFC 3168, section 5", Severity: all(Note), Needs: NeedPackets,
		Text: "A receiver of packets marked “congestion experienced” tells the sender with a CNP. If it does not, the sender goes on until packets are lost. Receivers need not support it, and the capture may lack the CNPs.",
	},
	ruleDSCP: {
		ID: "dscp-changed", Number: "F6.1", Title: "DSCP that changes within a connection",
		Source: "RFC 2474, section 3; RoCEv2 (IBTA annex A17)", Severity: all(Warning), Needs: NeedPackets,
		Text: "All requests and Read Responses of a queue pair have one traffic class; over iWARP, all segments with payload. With another one they are in another queue of each switch, where there may be no flow control, and they overtake each other. Acknowledgements and CNPs may have their own. One finding for a side of a connection.",
	},
	rulePriority: {
		ID: "priority-changed", Number: "F6.2", Title: "VLAN priority that changes within a connection",
		Source: "IEEE 802.1Q, sections 6.9 and 36", Severity: all(Warning), Needs: NeedPackets,
		Text: "Priority flow control stops one priority of a port. Packets with another one do not stop, and overtake. One finding for a side of a connection.",
	},
	ruleStalled: {
		ID: "message-stalled", Number: "F7.1", Title: "sender silent within a message",
		Source: "IEEE 802.1Q, section 36; this toolkit", Severity: all(Warning), Needs: NeedPackets,
		Text: "A message went on after 100 ms or more, in which nothing was lost and nothing was sent again. An adapter sends the packets of a message without a break, unless pause frames stop its port. Watchdogs against storms of pause frames act after such times, and drop packets.",
	},
	ruleSegmentMalformed: {
		ID: "ddp-segment-malformed", Number: "F8.1", Title: "bytes in the place of a DDP segment that cannot be one",
		Source: "RFC 5040, section 4; RFC 5041, section 4; RFC 5044, section 4", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "Versions, opcode, tagged flag, queue number and length of a segment belong together: an RDMA Write and a Read Response are tagged, Sends have queue 0, Read Requests queue 1 and 28 bytes, Terminate messages queue 2. The receiver ends the connection. Judged while the stream can be followed from the MPA frame on.",
	},
	ruleStreamMSN: {
		ID: "ddp-msn-wrong", Number: "F8.2", Title: "untagged message out of sequence",
		Source: "RFC 5041, sections 4 and 5", Severity: all(Error), Needs: NeedPackets,
		Text: "The untagged messages of each queue are numbered 1, 2, 3, …; all segments of a message have its number. The receiver has a buffer for the next number only, and ends the connection.",
	},
	ruleSegmentOrder: {
		ID: "ddp-segment-order", Number: "F8.3", Title: "segment that does not continue its message",
		Source: "RFC 5041, section 5", Severity: all(Error), Needs: NeedPackets,
		Text: "The segments of a message come in order, without holes and overlaps, up to the one with the last flag; the offset of an untagged message begins at 0. Messages do not interleave.",
	},
	ruleReadResponse: {
		ID: "read-response-mismatch", Number: "F8.4", Title: "Read Response that does not match its Read Request",
		Source: "RFC 5040, sections 4 and 5.2", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "Read Requests are answered in order, each with the bytes that it asks for, to the memory that it names. The last flag is set with the last of them.",
	},
	ruleTerminate: {
		ID: "terminate-wrong", Number: "F8.5", Title: "Terminate message with undefined contents, or not the last message",
		Source: "RFC 5040, sections 4.8 and 5", Severity: all(Warning), Needs: NeedPackets,
		Text: "A Terminate message has an error code that its layer defines, and the headers that its flags announce. Its sender sends nothing more.",
	},
	ruleMarker: {
		ID: "mpa-marker-wrong", Number: "F8.6", Title: "marker that does not point to its FPDU",
		Source: "RFC 5044, section 4.3", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "If the receiver has asked for markers, there is one after every 508 bytes. It holds the distance from the beginning of the FPDU. One finding for a side of a connection.",
	},
	ruleFPDUSize: {
		ID: "fpdu-over-segment", Number: "F8.7", Title: "FPDU that does not fit into a TCP segment",
		Source: "RFC 5044, sections 3 and 5.1", Severity: all(Note), Needs: NeedPackets,
		Text:  "A sender should make each FPDU fit into one TCP segment (the MULPDU depends on the segment size), so that the receiver can place its data although segments before it are missing. One finding for a side of a connection.",
		Known: "siw with segmentation offload makes FPDUs of up to 64 KiB",
	},
	ruleDepthAgreed: {
		ID: "mpa-depth-over-request", Number: "F8.8", Title: "MPA Reply with a depth beyond that of the Request",
		Source: "RFC 6581, section 9", Severity: all(Warning), Needs: NeedSetup,
		Text: "The responder starts no more RDMA Reads at once (ORD) than the initiator answers at once (IRD).",
	},
	ruleReplyRoom: {
		ID: "reply-room-too-small", Number: "L11.4", Title: "call refused whose results may need more room than it offers",
		Source: "RFC 8166, sections 3.4.6, 4.3.3 and 6.2; RFC 8267, section 5", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments, Bindings: []int{10},
		Text: "A requester that cannot know that the reply fits inline offers a Reply chunk for the longest one that its arguments allow. Judged if the responder refused the call with ERR_CHUNK.",
	},
	ruleReused: {
		ID: "psn-reused", Number: "N2.6", Title: "PSN used again for something else",
		Source: "IBTA volume 1, sections 9.7.2 and 9.7.5", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "Each request takes the PSNs behind the one before; an RDMA Read takes one for each packet of its response. A responder drops what has an older PSN as a repetition, and acknowledges it: what was sent is lost, and its sender does not learn of that.",
	},
	ruleAckUnsent: {
		ID: "ack-never-sent", Number: "F1.4", Title: "acknowledgement of a PSN that was never sent",
		Source: "IBTA volume 1, section 9.7.5", Severity: all(Error), Needs: NeedPackets | NeedSetup,
		Text: "An acknowledgement has the PSN of a request that was received. Judged for PSNs from before the first one of the setup, and for those that are as far from all requests as from all acknowledgements before.",
	},
	ruleNotResumed: {
		ID: "rest-not-resent", Number: "F1.5", Title: "requester did not go on behind the packet that an RNR NAK refused",
		Source: "IBTA volume 1, sections 9.7.5.2.8 and 9.9.2", Severity: all(Warning), Needs: NeedPackets,
		Text: "A receiver that is not ready drops the packet that it refuses and all that follow. The requester has to send all of them again, not only the first.",
	},
	ruleCallbackUnbound: {
		ID: "callback-unbound", Number: "N3.9", Title: "callback on a connection that is not bound to the backchannel",
		Source: "RFC 8881, sections 2.10.3.1, 18.34 and 18.36", Severity: all(Error), Needs: NeedCall | NeedSetup | NeedArguments,
		Text: "A connection carries callbacks of a session only if CREATE_SESSION or BIND_CONN_TO_SESSION has bound it to the backchannel. Calls of the session on it bind it to the fore channel only; the client need not answer callbacks there.",
	},
	ruleOneForm: {
		ID: "form-unanswered", Number: "N3.10", Title: "all calls with a chunk of one kind stay without a reply",
		Source: "this toolkit", Severity: all(Warning), Needs: NeedCall | NeedBefore,
		Text: "Between two hosts, no call with such a chunk was answered, at least two of them stayed without a reply, and others were answered. The responder, or what is between the two, fails at this kind of chunk. One finding covers all connections.",
	},
	ruleReplyContradicts: {
		ID: "reply-contradicts", Number: "N5.1", Title: "NFS results that contradict their call",
		Source: "RFC 8881, sections 18.46.3 and 18.32.3; RFC 1813, section 3.3.7", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "SEQUENCE returns the session, slot and sequence number of the call. READ and WRITE return no larger count than requested, and WRITE is at least as stable as requested.",
	},
	ruleCookies: {
		ID: "readdir-cookies", Number: "N5.2", Title: "directory cookies that break a listing",
		Source: "RFC 1813, section 3.3.16; RFC 8881, section 18.23", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "A listing continues after the cookie of its last entry. If a cookie is 0 or occurs twice in the listing, or if a page has no entries and is not the last, a client starts over, skips entries or never finishes.",
	},
	ruleChangeAttribute: {
		ID: "change-attribute-kept", Number: "N5.3", Title: "change attribute that does not show a change",
		Source: "RFC 8881, sections 3.3.5 and 5.8.1.4", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "If a server reports the values before and after a change as atomic, they differ, the earlier value does not return, and both are values of the change attribute. Otherwise, a client takes its stale cache of the directory for valid.",
	},
	ruleTimeBack: {
		ID: "change-time-back", Number: "N5.4", Title: "change time that went back",
		Source: "RFC 1813, section 2.6", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments | NeedBefore,
		Text: "The change time of a file does not go back. Clients of NFSv3 ignore attributes with an earlier change time as stale. The server's clock may have been set back.",
	},
	ruleAttributeMoved: {
		ID: "attribute-moved", Number: "N5.5", Title: "attribute that changed without its change attribute",
		Source: "RFC 8881, section 5.8.1.4; RFC 1813, section 2.6", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments | NeedBefore,
		Text: "The type and the file id of a file handle do not change. Size, mode, link count and owners change only together with the change attribute (NFSv3: the change time), with which clients validate their caches. Judged only if that was constant for the three seconds before.",
	},
	ruleNotAsked: {
		ID: "attributes-not-asked", Number: "N5.6", Title: "attributes that were not requested",
		Source: "RFC 8881, sections 18.7, 18.23 and 18.30", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "GETATTR and READDIR return only requested attributes. SETATTR, CREATE and OPEN report which attributes were set: only requested ones, and after SETATTR all of them.",
	},
	ruleUndefined: {
		ID: "value-undefined", Number: "N5.7", Title: "boolean or enumeration with a value that is not defined",
		Source: "RFC 4506, sections 4.3 and 4.4", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "A boolean is 0 or 1, an enumeration has one of the values that its protocol names. Implementations take others differently, or refuse them as GARBAGE_ARGS.",
	},
	ruleChannelDown: {
		ID: "backchannel-down", Number: "N3.11", Title: "the server cannot call back",
		Source: "RFC 8881, sections 18.36.3 and 18.46.3", Severity: all(Warning), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "SEQ4_STATUS_CB_PATH_DOWN and SEQ4_STATUS_CB_PATH_DOWN_SESSION stay set until the backchannel works again. Without it, a server recalls no delegations and grants none. Judged if they are set in the last reply of a session, in at least three replies, and in all of them or in one after BIND_CONN_TO_SESSION; or if CREATE_SESSION asks for a backchannel, and gets none. One finding for a session.",
	},
	rulePaused: {
		ID: "pause-storm", Number: "F7.2", Title: "priority stopped by pause frames without a break",
		Source: "IEEE 802.1Q, section 36; IEEE 802.3, annex 31B", Severity: all(Warning), Needs: NeedPackets,
		Text: "Pause frames stopped a priority, or the whole port, for 100 ms or more; each was followed by the next before it ended. A receiver that cannot keep up stops its peer for microseconds. One that stops it for long is broken or hangs, and stops what is behind its peer, too. One finding for a priority, about its longest stop.",
	},
	ruleNoAnswer: {
		ID: "connection-unanswered", Number: "N3.13", Title: "no answer to the requests for a connection, or to its packets",
		Source: "IBTA volume 1, chapter 12; RFC 5044, section 7.1", Severity: all(Warning), Needs: NeedPackets,
		Text: "The request was sent again, or the TCP connection ended. The peer got no request, dropped it, or its answer was lost. A single request over RoCE or InfiniBand, or a single SYN, is not judged: its answer may come after the capture. SYNs count as a refused TCP connection does. Packets that are sent again count if their peer sends the other version of RoCE only, or has a P_Key that does not match.",
	},
	ruleOffload: {
		ID: "offload-unreported", Number: "N3.12", Title: "asynchronous operation whose end is never reported",
		Source: "RFC 7862, sections 15.2, 15.9 and 16.1", Severity: all(Note), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "A server that copies or writes on after its reply returns a state id, and reports the outcome with CB_OFFLOAD. A client that misses it can ask with OFFLOAD_STATUS, and waits otherwise. The callback may have come on a connection that was not captured.",
	},
	ruleResults: {
		ID: "results-malformed", Number: "N5.8", Title: "reply that does not decode",
		Source: "RFC 4506; RFC 5531, section 9", Severity: all(Error), Needs: NeedCall | NeedReply | NeedArguments,
		Text: "The reply ends before its last item, lacks the padding of that item, declares a length that exceeds it, or does not begin with an RPC header. Clients fail the call, wait for another reply, or take what comes next for the rest. Judged if the arguments decode, and nothing of the reply is missing.",
	},
}
