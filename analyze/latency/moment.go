package latency

import "time"

// Moment is when a packet came; the zero value if there is none, which is null in JSON.
type Moment struct{ time.Time }

// moment is the time of a packet of several, in nanoseconds since 1970.
func moment(packets uint64, ns int64) Moment {
	if packets == 0 {
		return Moment{}
	}
	return Moment{utc(ns)}
}

// String is the moment for readers.
func (m Moment) String() string {
	if m.IsZero() {
		return "an unknown time"
	}
	return m.Format("2006-01-02 15:04:05.000000 UTC")
}

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("null"), nil
	}
	return m.Time.MarshalJSON()
}
