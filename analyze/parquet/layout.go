package parquet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout says how transactions are spread over files below a directory, as in Hive: key=value folders, which
// engines turn into columns.
type Layout struct {
	// Step is the length of a partition of time: a day or more of none, hours
	// that divide a day, or minutes that divide an hour. Zero: time is no
	// partition.
	Step time.Duration
	// Host, if not empty, is the value of the innermost partition.
	Host string
}

// ParseLayout reads a list of partitions, such as "time=1h,host". The host is
// to be filled in.
func ParseLayout(s string) (l Layout, host bool, err error) {
	for part := range strings.SplitSeq(s, ",") {
		key, value, has := strings.Cut(part, "=")
		switch {
		case key == "host" && !has && !host:
			host = true
		case key == "time" && has && l.Step == 0:
			if l.Step, err = parseStep(value); err != nil {
				return l, host, err
			}
		default:
			return l, host, fmt.Errorf("%q is not a partition: use time=1d, time=1h, time=15m or host, each once, with a comma between", part)
		}
	}
	return l, host, nil
}

func parseStep(s string) (time.Duration, error) {
	n, err := strconv.Atoi(strings.TrimRight(s, "dhm"))
	unit := strings.TrimLeft(s, "0123456789")
	switch {
	case err != nil || n <= 0:
	case unit == "d" && n == 1:
		return day, nil
	case unit == "h" && n <= 24 && 24%n == 0:
		return time.Duration(n) * time.Hour, nil
	case unit == "m" && n <= 60 && 60%n == 0:
		return time.Duration(n) * time.Minute, nil
	}
	return 0, fmt.Errorf("%q is not a length of time for a partition: 1d, hours that divide a day, or minutes that divide an hour", s)
}

const day = 24 * time.Hour

// start is the beginning of the partition that a time belongs to, in
// nanoseconds since 1970.
func (l Layout) start(ns int64) int64 {
	if l.Step == 0 {
		return 0
	}
	rest := ns % int64(l.Step)
	if rest < 0 {
		rest += int64(l.Step)
	}
	return ns - rest
}

// folder is the path of a partition by its start.
func (l Layout) folder(start int64) string {
	var parts []string
	if l.Step != 0 {
		t := time.Unix(0, start).UTC()
		parts = append(parts, "date="+t.Format("2006-01-02"))
		if l.Step < day {
			parts = append(parts, "hour="+t.Format("15"))
		}
		if l.Step < time.Hour {
			parts = append(parts, "minute="+t.Format("04"))
		}
	}
	if l.Host != "" {
		parts = append(parts, "host="+escape(l.Host))
	}
	return strings.Join(parts, "/")
}

// escape writes what may not stand in the name of a folder as %XX, as Hive
// does.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
