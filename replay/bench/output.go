package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// columns describe what was measured. A table omits columns in which all rows are
// equal.
var columns = []struct {
	name string
	of   func(r *Result) string
}{
	{"JOB", func(r *Result) string { return r.Job }},
	{"FABRIC", func(r *Result) string { return r.Fabric }},
	{"NFS", func(r *Result) string { return r.Version }},
	{"MODEL", func(r *Result) string { return r.Model }},
	{"CREDIT POLICY", func(r *Result) string { return r.Policy }},
	{"CREDITS", func(r *Result) string { return credits(r) }},
	{"REGISTRATION", func(r *Result) string { return r.Registration }},
	{"INLINE", func(r *Result) string { return size(r.Inline) }},
	{"MIN CHUNK", func(r *Result) string { return size(r.MinChunk) }},
	{"MTU", func(r *Result) string { return size(r.MTU) }},
	{"CLIENTS", func(r *Result) string { return strconv.Itoa(max(1, r.Clients)) }},
	{"FACTORS", func(r *Result) string { return factors(r) }},
	{"SIZE", func(r *Result) string { return size(r.Size) }},
	{"IN FLIGHT", func(r *Result) string { return strconv.Itoa(r.Outstanding) }},
}

// factors returns the factors of the credit policy: of the client, then of the server.
func factors(r *Result) string {
	if r.ClientFactor == 0 && r.ServerFactor == 0 {
		return ""
	}
	return fmt.Sprintf("%g/%g", r.ClientFactor, r.ServerFactor)
}

// credits are those that were chosen; empty for the defaults.
func credits(r *Result) string {
	if r.Credits == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(r.Credits), 10)
}

// size is a number of bytes, empty if the job has none.
func size(n int) string {
	if n == 0 {
		return ""
	}
	return units.Size(n)
}

// differs reports which columns differ among results.
func differs(list []*Result) []bool {
	out := make([]bool, len(columns))
	for i, c := range columns {
		first, any := "", false
		for _, r := range list {
			v := c.of(r)
			if v == "" && r.Fabric == "tcp" {
				continue // it has no such setting
			}
			if !any {
				first, any = v, true
			}
			out[i] = out[i] || v != first
		}
	}
	out[0] = true
	return out
}

// Table writes results for people. What all of them share stands above the table.
func Table(w io.Writer, list []*Result) error {
	if len(list) == 0 {
		return nil
	}
	show := differs(list)
	var shared []string
	t := table.Table{Gap: "  "}
	for i, c := range columns {
		if show[i] {
			t.Header, t.Right = append(t.Header, c.name), append(t.Right, false)
		} else if v := common(list, c.of); v != "" {
			shared = append(shared, strings.ToLower(c.name)+" "+v)
		}
	}
	measured := shownOf(list)
	for _, c := range measured {
		t.Header, t.Right = append(t.Header, c.name), append(t.Right, true)
	}
	if slices.ContainsFunc(list, func(r *Result) bool { return r.Err != "" }) {
		t.Header = append(t.Header, "ERROR")
	}
	first := firsts(list)
	for i, r := range list {
		t.Rows = append(t.Rows, row(r, first[i], show, measured, len(t.Header)))
	}
	if len(shared) > 0 {
		if _, err := fmt.Fprintf(w, "%s\n\n", strings.Join(shared, ", ")); err != nil {
			return err
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	note := "\nMB/s: 10^6 bytes of data a second. CPU: user and system time of each process,\nms for each MB of data; µs for each call (marked c) where no data are moved.\n"
	if slices.ContainsFunc(list, func(r *Result) bool { return r.ServerCPU >= 0 }) {
		note += "Files lie in the memory of our server: no disk is measured.\n"
	}
	for _, c := range measured {
		note += c.note
	}
	_, err := fmt.Fprint(w, note)
	return err
}

// common is what all results that have anything in a column have there.
func common(list []*Result, of func(*Result) string) string {
	for _, r := range list {
		if v := of(r); v != "" {
			return v
		}
	}
	return ""
}

// measures describe what came out. first is the result of the first setting for the same job, or nil.
var measures = []measure{
	{name: "SPREAD", of: func(r, _ *Result) string { return fmt.Sprintf("%.0f%%", 100*r.Spread) }, when: func(list []*Result) bool {
		return slices.ContainsFunc(list, func(r *Result) bool { return r.Rounds > 0 })
	}},
	{name: "CALLS/S", of: func(r, _ *Result) string { return fmt.Sprintf("%.0f", r.PerSecond()) }},
	{name: "MB/S", of: func(r, _ *Result) string { return rate(r) }},
	{name: "P50", of: func(r, _ *Result) string { return latency(r.P50) }},
	{name: "P99", of: func(r, _ *Result) string { return latency(r.P99) }},
	{
		name: "WAIT", of: func(r, _ *Result) string { return waited(r) }, when: func(list []*Result) bool {
			return slices.ContainsFunc(list, func(r *Result) bool { return r.Credits != list[0].Credits })
		},
		note: "WAIT: mean time before a call is sent, for a credit or to register its memory.\n",
	},
	{name: "CLIENT CPU", of: func(r, _ *Result) string { return cpu(r, false) }},
	{name: "SERVER CPU", of: func(r, _ *Result) string { return cpu(r, true) }},
	{
		name: "RATE/1ST", of: func(r, first *Result) string { return ratio(r, first, (*Result).PerSecond) }, when: severalSettings,
		note: "/1ST: as a share of the same job under the first setting.\n",
	},
	{name: "CPU/1ST", of: func(r, first *Result) string { return ratio(r, first, (*Result).cpuPerCall) }, when: severalSettings},
	{name: "COPIED", of: func(r, _ *Result) string { return copied(r) }, when: severalShares, note: "COPIED: data that went through Sends. SEGMENTS: offered for each call.\n"},
	{name: "SEGMENTS", of: func(r, _ *Result) string {
		if r.Fabric == "tcp" || r.Calls == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", float64(r.Segments)/float64(r.Calls))
	}, when: severalShares},
}

// waited is how long a call waited before it was sent.
func waited(r *Result) string {
	if r.Fabric == "tcp" || r.Calls == 0 {
		return "-"
	}
	return latency(r.Waited / time.Duration(r.Calls))
}

// measure is a column of what came out.
type measure struct {
	name string
	of   func(r, first *Result) string
	when func(list []*Result) bool // nil: always
	note string                    // below the table
}

// shownOf are the measures that say something about a list.
func shownOf(list []*Result) (out []measure) {
	for _, c := range measures {
		if c.when == nil || c.when(list) {
			out = append(out, c)
		}
	}
	return out
}

// severalSettings reports whether a job was done under several settings.
func severalSettings(list []*Result) bool {
	for i, f := range firsts(list) {
		if f != nil && f != list[i] {
			return true
		}
	}
	return false
}

// severalShares reports whether data were copied in some jobs over RDMA, and placed in others.
func severalShares(list []*Result) bool {
	var values []string
	for _, r := range list {
		if v := copied(r); v != "-" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return len(values) > 1
}

// firsts are, for each result, that of the first setting for the same job; nil if that failed.
func firsts(list []*Result) []*Result {
	type job struct {
		name              string
		size, outstanding int
	}
	first := map[job]*Result{}
	out := make([]*Result, len(list))
	for i, r := range list {
		k := job{r.Job, r.Size, r.Outstanding}
		if _, ok := first[k]; !ok {
			first[k] = r
		}
		if f := first[k]; f.Err == "" {
			out[i] = f
		}
	}
	return out
}

// ratio is a value as a share of the same value of the first setting.
func ratio(r, first *Result, of func(*Result) float64) string {
	if first == nil || of(first) <= 0 || of(r) <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", of(r)/of(first))
}

// cpuPerCall is the processor time of both sides, as far as it is known, for each call, in nanoseconds.
func (r *Result) cpuPerCall() float64 {
	return float64(max(r.ClientCPU, 0)+max(r.ServerCPU, 0)) / float64(max(1, r.Calls))
}

func copied(r *Result) string {
	if v := r.Copied(); v >= 0 {
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	return "-"
}

// row has the cells of a result, n of them.
func row(r, first *Result, show []bool, measured []measure, n int) []string {
	cells := make([]string, 0, n)
	for i, c := range columns {
		if show[i] {
			cells = append(cells, c.of(r))
		}
	}
	if r.Err != "" {
		for len(cells) < n-1 {
			cells = append(cells, "-")
		}
		return append(cells, r.Err)
	}
	for _, c := range measured {
		cells = append(cells, c.of(r, first))
	}
	for len(cells) < n {
		cells = append(cells, "")
	}
	return cells
}

func rate(r *Result) string {
	if r.Bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", r.Rate()/1e6)
}

func latency(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}

func cpu(r *Result, server bool) string {
	t := r.ClientCPU
	if server {
		t = r.ServerCPU
	}
	switch {
	case t < 0:
		return "-"
	case r.Bytes > 0:
		return fmt.Sprintf("%.3f", r.CPUPerByte(server))
	case r.Calls > 0:
		return fmt.Sprintf("%.1fc", float64(t)/float64(r.Calls)/1e3)
	}
	return "-"
}

// CSV writes results for programs: one line each, below a line of names.
func CSV(w io.Writer, list []*Result) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"job", "fabric", "nfs", "model", "credits", "registration", "inline_bytes", "size_bytes", "outstanding", "link_delay_ns", "link_bits_per_second",
		"calls", "bytes", "elapsed_ns", "calls_per_second", "bytes_per_second", "p50_ns", "p99_ns", "client_cpu_ns", "server_cpu_ns", "client_cpu_ns_per_byte", "server_cpu_ns_per_byte", "error", "rounds", "spread",
		"min_chunk_bytes", "mtu", "clients", "client_factor", "server_factor", "placed_bytes", "segments", "credits_granted", "waited_ns"})
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, r := range list {
		cpu := func(t time.Duration, server bool) (total, each string) { // empty if it is not known
			if t >= 0 {
				total = strconv.FormatInt(int64(t), 10)
				if r.Bytes > 0 {
					each = num(r.CPUPerByte(server))
				}
			}
			return total, each
		}
		client, clientByte := cpu(r.ClientCPU, false)
		server, serverByte := cpu(r.ServerCPU, true)
		_ = c.Write([]string{r.Job, r.Fabric, r.Version, r.Model, r.Policy, r.Registration, strconv.Itoa(r.Inline), strconv.Itoa(r.Size), strconv.Itoa(r.Outstanding),
			strconv.FormatInt(int64(r.Setting.Link.Delay), 10), strconv.FormatInt(r.Setting.Link.Bandwidth, 10),
			strconv.Itoa(r.Calls), strconv.FormatUint(r.Bytes, 10), strconv.FormatInt(int64(r.Elapsed), 10), num(r.PerSecond()), num(r.Rate()),
			strconv.FormatInt(int64(r.P50), 10), strconv.FormatInt(int64(r.P99), 10), client, server, clientByte, serverByte, r.Err, strconv.Itoa(max(1, r.Rounds)), num(r.Spread),
			strconv.Itoa(r.MinChunk), strconv.Itoa(r.MTU), strconv.Itoa(max(1, r.Clients)), num(r.ClientFactor), num(r.ServerFactor),
			strconv.FormatUint(r.Placed, 10), strconv.FormatUint(r.Segments, 10), strconv.FormatUint(uint64(r.Credits), 10), strconv.FormatInt(int64(r.Waited), 10)})
	}
	c.Flush()
	return c.Error()
}
