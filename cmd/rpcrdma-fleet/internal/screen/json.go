package screen

import (
	"io"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Schema names the format of JSON.
const Schema = "rpcrdma.fleet.top/1"

type fleetJSON struct {
	Schema   string      `json:"schema"`
	Time     time.Time   `json:"time"`
	Totals   live.Totals `json:"totals"`
	Refused  uint64      `json:"messages_refused"`
	LeftOut  uint64      `json:"messages_of_further_taps"`
	TapsJSON []tapJSON   `json:"taps"`
}

type tapJSON struct {
	Came    time.Time     `json:"came"`
	Silent  bool          `json:"silent"`
	Quiet   time.Time     `json:"no_packets_since,omitzero"`
	Missing uint64        `json:"summaries_missing"`
	Last    *live.Summary `json:"latest"`
}

// JSON prints the fleet as one line.
func JSON(w io.Writer, f *live.Fleet, by live.Order, detail string, now time.Time) error {
	x := fleetJSON{Schema: Schema, Time: now.UTC(), Totals: f.Totals(now), Refused: f.Refused, LeftOut: f.TooMany, TapsJSON: []tapJSON{}}
	for _, t := range f.Taps(by, now) {
		if detail == "" || t.Name == detail {
			x.TapsJSON = append(x.TapsJSON, tapJSON{t.Came.UTC(), t.Silent(now), t.Quiet.UTC(), t.Missing, t.Last})
		}
	}
	return printable.Encoder(w).Encode(x)
}
