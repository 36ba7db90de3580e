package guard

import "fmt"

// Reason is why a call is not sent.
type Reason uint8

// Reasons.
const (
	// Malformed calls cannot be decoded.
	Malformed Reason = iota + 1
	// Ambiguous calls are decoded, but are not what their arguments would be
	// encoded as: bytes are left, padding is not zero, a boolean is neither 0 nor 1.
	Ambiguous
	// Undefined calls have an enumeration, or an attribute, that the protocol, as
	// far as it is known, does not define.
	Undefined
	// Unknown procedures and operations are not in the table.
	Unknown
	// NeverReplayed calls are in it, as such.
	NeverReplayed
	// Credential: the call is of a user who cannot be checked.
	Credential
	// ReadOnly: it would change something, and nothing may be changed.
	ReadOnly
	// Outside: it would change something that is not known to be below the base.
	Outside
	// InTheWay: it would keep others from something that is not below the base.
	InTheWay
	// Elsewhere: a name leads out of its directory.
	Elsewhere
	// Foreign: it is of a client, a session or a state that is not this run's.
	Foreign
)

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
	switch r.Reason {
	case Malformed:
		return fmt.Sprintf("%s cannot be decoded: %s", what, r.Detail)
	case Ambiguous:
		return fmt.Sprintf("%s is not encoded as its arguments are (%s)", what, r.Detail)
	case Undefined:
		return fmt.Sprintf("%s has a value that is not defined (%s)", what, r.Detail)
	case Unknown:
		return fmt.Sprintf("%s is not known", what)
	case NeverReplayed:
		return fmt.Sprintf("%s is never replayed", what)
	case Credential:
		return fmt.Sprintf("the credential cannot be checked (%s)", r.Detail)
	case ReadOnly:
		return "it would change something, which was not allowed"
	case Outside:
		return fmt.Sprintf("%s would change something that is not known to be below the base", what)
	case InTheWay:
		return fmt.Sprintf("%s would stand in others' way outside of the base", what)
	case Elsewhere:
		return fmt.Sprintf("%s: the name %s leads elsewhere", what, r.Detail)
	case Foreign:
		return fmt.Sprintf("%s: its %s is not of this run", what, r.Detail)
	}
	return what + " is not sent"
}
