package invariant

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// listing is the progress of a client through a directory.
type listing struct {
	last    uint64 // cookie of the last entry
	cookies map[uint64]struct{}
}

// maxCookies is the number of cookies remembered of a listing.
const maxCookies = 1 << 13

// page judges the cookies of a page of a directory, which begins behind the cookie from.
func (c *Checker) page(directory []byte, from uint64, n int, cookie func(int) uint64, eof bool) {
	c.judged |= 1 << CookieTwice
	if n == 0 {
		if !eof {
			c.add(Breach{Kind: NoEntries})
		}
		return
	}
	l := c.listing(directory)
	seen := c.cookies
	if l != nil {
		if from == 0 || from != l.last || c.x.Again {
			clear(l.cookies)
		}
		seen = l.cookies
	} else {
		clear(seen)
	}
	if from != 0 {
		seen[from] = struct{}{}
	}
	again := Breach{Kind: CookieTwice}
	for i := range n {
		k := cookie(i)
		if k == 0 {
			c.add(Breach{Kind: CookieZero, Now: uint64(i)})
		} else if _, twice := seen[k]; twice {
			if again.Was++; again.Was == 1 {
				again.Now = k
			}
		}
		if len(seen) < maxCookies {
			seen[k] = struct{}{}
		}
	}
	if again.Was > 0 {
		c.add(again)
	}
	if l != nil {
		l.last = cookie(n - 1)
	}
}

func (c *Checker) listing(directory []byte) *listing {
	if len(directory) == 0 {
		return nil
	}
	k := c.key(directory)
	l := c.listings[k]
	if l == nil {
		if old, full := c.listed.add(k, maxListings); full {
			l = c.listings[old]
			delete(c.listings, old)
			clear(l.cookies)
			l.last = 0
		} else {
			l = &listing{cookies: make(map[uint64]struct{})}
		}
		c.listings[k] = l
	}
	return l
}

// besideEntries are the bytes of a page of NFSv3 that are no entries: attributes of the directory, verifier, the end of the list. Linux does not
// count them.
const besideEntries = 4 + 84 + 8 + 4 + 4

// fits judges the length of a page of a directory (RFC 1813, sections 3.3.16 and 3.3.17; RFC 8881, section 18.23.3).
func (c *Checker) fits(page xdr.Message, most, beside uint32) {
	c.encoded = page.Append(c.encoded[:0])
	if n := uint64(len(c.encoded)); n > uint64(most)+uint64(beside) {
		c.add(Breach{Kind: Contradiction, Why: fmt.Sprintf("a page of %d bytes, of which the call allows %d", n, most)})
	}
}
