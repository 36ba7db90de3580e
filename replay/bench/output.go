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
	{"CREDITS", func(r *Result) string { return r.Policy }},
	{"REGISTRATION", func(r *Result) string { return r.Registration }},
	{"INLINE", func(r *Result) string { return size(r.Inline) }},
	{"SIZE", func(r *Result) string { return size(r.Size) }},
	{"UNDER WAY", func(r *Result) string { return strconv.Itoa(r.Outstanding) }},
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
		first := ""
		for _, r := range list {
			v := c.of(r)
			if first == "" {
				first = v
			}
			// An empty cell, as TCP has in some columns, counts as equal.
			out[i] = out[i] || v != "" && v != first
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
	repeated := slices.ContainsFunc(list, func(r *Result) bool { return r.Rounds > 0 })
	if repeated {
		t.Header, t.Right = append(t.Header, "SPREAD"), append(t.Right, true)
	}
	for _, name := range []string{"CALLS/S", "MB/S", "P50", "P99", "CLIENT CPU", "SERVER CPU"} {
		t.Header, t.Right = append(t.Header, name), append(t.Right, true)
	}
	if slices.ContainsFunc(list, func(r *Result) bool { return r.Err != "" }) {
		t.Header = append(t.Header, "ERROR")
	}
	for _, r := range list {
		t.Rows = append(t.Rows, row(r, show, repeated, len(t.Header)))
	}
	if len(shared) > 0 {
		if _, err := fmt.Fprintf(w, "%s\n\n", strings.Join(shared, ", ")); err != nil {
			return err
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nMB/s: 10^6 bytes of data a second. CPU: user and system time of each process,\nns for each byte of data; µs for each call (marked c) where no data are moved.\n")
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

// row has the cells of a result, n of them.
func row(r *Result, show []bool, repeated bool, n int) []string {
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
	if repeated {
		cells = append(cells, fmt.Sprintf("%.0f%%", 100*r.Spread))
	}
	cells = append(cells, fmt.Sprintf("%.0f", r.PerSecond()), rate(r), latency(r.P50), latency(r.P99), cpu(r, false), cpu(r, true))
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
		"calls", "bytes", "elapsed_ns", "calls_per_second", "bytes_per_second", "p50_ns", "p99_ns", "client_cpu_ns", "server_cpu_ns", "client_cpu_ns_per_byte", "server_cpu_ns_per_byte", "error", "rounds", "spread"})
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, r := range list {
		server, client, serverByte := "", num(r.CPUPerByte(false)), ""
		if r.Bytes == 0 {
			client = ""
		}
		if r.ServerCPU >= 0 {
			server = strconv.FormatInt(int64(r.ServerCPU), 10)
			if r.Bytes > 0 {
				serverByte = num(r.CPUPerByte(true))
			}
		}
		_ = c.Write([]string{r.Job, r.Fabric, r.Version, r.Model, r.Policy, r.Registration, strconv.Itoa(r.Inline), strconv.Itoa(r.Size), strconv.Itoa(r.Outstanding),
			strconv.FormatInt(int64(r.Setting.Link.Delay), 10), strconv.FormatInt(r.Setting.Link.Bandwidth, 10),
			strconv.Itoa(r.Calls), strconv.FormatUint(r.Bytes, 10), strconv.FormatInt(int64(r.Elapsed), 10), num(r.PerSecond()), num(r.Rate()),
			strconv.FormatInt(int64(r.P50), 10), strconv.FormatInt(int64(r.P99), 10), strconv.FormatInt(int64(r.ClientCPU), 10), server, client, serverByte, r.Err, strconv.Itoa(max(1, r.Rounds)), num(r.Spread)})
	}
	c.Flush()
	return c.Error()
}
