package guard

import "strings"

// Reason is why a call is not sent.
type Reason uint8

// Reasons.
const (
	// Malformed calls cannot be decoded.
	Malformed Reason = iota + 1
	// Ambiguous calls can be decoded, but their arguments encode to other bytes: bytes are
	// left over, padding is not zero, a boolean is neither 0 nor 1.
	Ambiguous
	// Undefined calls have a value of an enumeration, or an attribute, that the known
	// protocol does not define.
	Undefined
	// Unknown procedures and operations are not in the table.
	Unknown
	// NeverReplayed: the table says so.
	NeverReplayed
	// Credential: the credential cannot be checked.
	Credential
	// ReadOnly: it would change something, and nothing may be changed.
	ReadOnly
	// Outside: it would change something that is not known to be below the base.
	Outside
	// InTheWay: it would block others from something that is not below the base.
	InTheWay
	// Elsewhere: a name leads out of its directory.
	Elsewhere
	// Foreign: it names a client, a session or a state that is not this run's.
	Foreign

	numReasons
)

// sentences say the reasons. {what} and {detail} stand for the fields of a Refused.
var sentences = [numReasons]string{
	Malformed:     "{what} cannot be decoded: {detail}",
	Ambiguous:     "{what} is not encoded as its arguments are ({detail})",
	Undefined:     "{what} has a value that is not defined ({detail})",
	Unknown:       "{what} is not known",
	NeverReplayed: "{what} is never replayed",
	Credential:    "the credential cannot be checked ({detail})",
	ReadOnly:      "it would change something, which was not allowed",
	Outside:       "{what} would change something that is not known to be below the base",
	InTheWay:      "{what} would stand in others' way outside of the base",
	Elsewhere:     "{what}: the name {detail} leads elsewhere",
	Foreign:       "{what}: its {detail} is not of this run",
}

// Refused is the error of a call that was not sent.
type Refused struct {
	Reason Reason
	// What is the procedure or operation: "REMOVE". It may be empty.
	What string
	// Detail is what belongs to the reason: a name, a field, an error's text.
	Detail string
}

func (r *Refused) Error() string {
	what := r.What
	if what == "" {
		what = "the call"
	}
	if r.Reason == 0 || r.Reason >= numReasons {
		return what + " is not sent"
	}
	return strings.NewReplacer("{what}", what, "{detail}", r.Detail).Replace(sentences[r.Reason])
}
