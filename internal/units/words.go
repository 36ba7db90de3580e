package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Plural is a number with the noun that it counts: "1 packet", "2 packets", "2 summaries".
func Plural[N Integer](n N, what string) string { return string(AppendPlural(nil, n, what)) }

// AppendPlural appends Plural.
func AppendPlural[N Integer](b []byte, n N, what string) []byte {
	b = append(appendInteger(b, n), ' ')
	if n == 1 {
		return append(b, what...)
	}
	if s, ok := strings.CutSuffix(what, "y"); ok && s != "" && !strings.ContainsRune("aeiou", rune(s[len(s)-1])) {
		return append(append(b, s...), "ies"...)
	}
	return append(append(b, what...), 's')
}

// Times is "once", "3 times".
func Times[N Integer](n N) string {
	if n == 1 {
		return "once"
	}
	return Plural(n, "time")
}

// Number is a cell: the number in full, "-" for zero.
func Number[N Integer](n N) string {
	if n == 0 {
		return "-"
	}
	return string(appendInteger(nil, n))
}

// Count is a number in few columns: in full below 100000, then rounded.
func Count(n uint64) string {
	if n < 100_000 {
		return strconv.FormatUint(n, 10)
	}
	return Rounded(float64(n), 1000)
}

// CountCell is Count as a cell: "-" for zero.
func CountCell(n uint64) string {
	if n == 0 {
		return "-"
	}
	return Count(n)
}

// Percent is a cell: a share of one in percent, with one digit after the point and without the sign; "-" for zero.
func Percent(share float64) string {
	if share == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*share, 'f', 1, 64)
}

// WholePercent is a share of one in whole percent: "12%".
func WholePercent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + "%" }

// Part is how much a part is of a whole, in percent with one digit after the point and without the sign; "0" of nothing.
func Part[N ~int64 | ~uint64](part, whole N) string {
	if whole <= 0 {
		return "0"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64)
}

// PartCell is a cell: how much a part is of a whole, "12%", and "<1%" of what would be rounded to nothing; "-" of nothing.
func PartCell(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	p := 100 * float64(part) / float64(whole)
	if p > 0 && p < 0.5 {
		return "<1%"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + "%"
}

func appendInteger[N Integer](b []byte, n N) []byte {
	if n < 0 {
		return strconv.AppendInt(b, int64(n), 10)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}

// XID is the transaction ID of an RPC call as texts, pages and the key xid_hex show it: eight hexadecimal digits behind 0x.
func XID(xid uint32) string { return fmt.Sprintf("0x%08x", xid) }
