package latency

import (
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Span is how long a capture lasted, in nanoseconds; negative if the time of its packets goes back behind the first one, so that nobody
// knows. It is null in JSON then.
type Span int64

const unknownSpan Span = -1

// String is the length for readers, or that it is unknown.
func (s Span) String() string { return text.Within(0, int64(s)) }

// Known reports whether the length is known.
func (s Span) Known() bool { return s >= 0 }

// MarshalJSON implements json.Marshaler.
func (s Span) MarshalJSON() ([]byte, error) {
	if !s.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// spanOf is the time from first to last, in nanoseconds since 1970.
func spanOf(first, last int64) Span {
	if last < first {
		return unknownSpan
	}
	return Span(rdma.Between(first, last))
}

// Rate is a count by second; negative if it is not known for how many seconds. It is null in JSON then.
type Rate float64

// Rounded is the rate for readers, see text.Rounded; "-" if it is not known.
func (r Rate) Rounded(unit float64) string {
	if r < 0 {
		return "-"
	}
	return units.Rounded(float64(r), unit)
}

// MarshalJSON implements json.Marshaler.
func (r Rate) MarshalJSON() ([]byte, error) {
	if r < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(r), 'f', -1, 64), nil
}

// per is n by second of a span; 0 of one that has no length.
func (s Span) per(n float64) Rate {
	switch {
	case !s.Known():
		return -1
	case s == 0:
		return 0
	}
	return Rate(n / (float64(s) / 1e9))
}
