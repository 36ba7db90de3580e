package verdict

// Verdict is how a reply compares with the captured one, from the best to the worst.
type Verdict uint8

// Verdicts.
const (
	// Same: all that a server does not choose by itself is as captured.
	Same Verdict = iota
	// Equivalent: what differs makes no difference to the client, and the reason
	// says what it is.
	Equivalent
	// Omitted: not sent, because on this server there was nothing to do.
	Omitted
	// Better: the captured call failed, and this one did not.
	Better
	// Explained: it differs, and the plan or the server says why: the plan could not
	// tell what the capture depended on, or the server does not support it.
	Explained
	// Worse: the captured call succeeded, and this one did not.
	Worse
	// Different: anything else.
	Different
	// NotSent: the call could not be sent, or not be sent safely.
	NotSent
	// Lost: no reply came.
	Lost

	// Count is how many verdicts there are.
	Count = int(Lost) + 1
)

var names = [Count]string{"same", "equivalent", "omitted", "better", "explained", "worse", "different", "not sent", "lost"}

func (v Verdict) String() string {
	if int(v) < len(names) {
		return names[v]
	}
	return "unknown"
}

// MarshalText is for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Fine reports whether nothing is wrong that needs an explanation.
func (v Verdict) Fine() bool { return v <= Explained }
