package latency

import "math/bits"

// histogram counts values above 0 in the buckets of HdrHistogram, whose width grows with the value: each power of two is
// divided into 2^magnitude buckets. It has the pages that are in use only, since the values of a group are near one another.
type histogram struct {
	magnitude uint8
	first     int // number of the page that pages begins with
	pages     []*page
}

// page counts the values of buckets that follow one another.
type page [16]uint64

const (
	pageSize    = 16 * 8
	pointerSize = 8
)

// magnitudes are the binary digits, after the first, that a histogram of a number of decimal digits keeps.
var magnitudes = [...]uint8{0, 4, 7, 10}

// bucketOf is the number of the bucket that a value belongs to.
func bucketOf(v int64, magnitude uint8) int {
	shift := bits.Len64(uint64(v)>>(magnitude+1)) & 63
	return shift<<(magnitude&63) + int(v>>shift)
}

// boundsOf are the least and the largest value of a bucket.
func boundsOf(bucket int, magnitude uint8) (least, largest int64) {
	shift := max(bucket>>magnitude-1, 0)
	least = int64(bucket-shift<<magnitude) << shift
	return least, least + 1<<shift - 1
}

// add counts n equal values, and returns how many bytes it took for that.
func (h *histogram) add(v int64, n uint64) (bytes int) {
	bucket := bucketOf(v, h.magnitude)
	at := bucket/len(page{}) - h.first
	if uint(at) >= uint(len(h.pages)) {
		at, bytes = h.extend(bucket / len(page{}))
	}
	p := h.pages[at]
	if p == nil {
		p = new(page)
		h.pages[at] = p
		bytes += pageSize
	}
	p[bucket%len(page{})] += n
	return bytes
}

// extend makes the list of pages include one, and returns its index, and how many bytes the list takes more.
func (h *histogram) extend(number int) (at, bytes int) {
	before := cap(h.pages)
	switch {
	case len(h.pages) == 0:
		h.first = number
		h.pages = make([]*page, 1)
	case number < h.first:
		h.pages = append(make([]*page, h.first-number, h.first-number+len(h.pages)), h.pages...)
		h.first = number
	default:
		h.pages = append(h.pages, make([]*page, number-h.first+1-len(h.pages))...)
	}
	return number - h.first, pointerSize * (cap(h.pages) - before)
}

// each calls f for each bucket with values in ascending order, with its least and its largest value.
func (h *histogram) each(f func(least, largest int64, n uint64)) {
	for i, p := range h.pages {
		if p == nil {
			continue
		}
		for k, n := range p {
			if n > 0 {
				least, largest := boundsOf((h.first+i)*len(page{})+k, h.magnitude)
				f(least, largest, n)
			}
		}
	}
}
