// Package units writes numbers for people: durations, bytes, rates, shares, and numbers with the noun that they count.
// What machines read has plain numbers instead.
//
// Functions that return a table cell write "-" for nothing; each says so.
package units

// Integer is any integer type.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}
