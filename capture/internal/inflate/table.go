package inflate

// A Huffman code is decoded by a table that is indexed by the next bits of the stream. Codes that are longer than
// the index continue in a second table behind it. An entry has in its low bits how many bits of the stream it takes;
// the rest depends on what it stands for:
//
//	literal    1 | byte: 8 at 16
//	length     base: 9 at 16 | bits of the code: 6 at 8    (what it takes includes the extra bits)
//	distance   base: 15 at 16 | bits of the code: 6 at 8   (likewise)
//	special    see below
type entry = uint32

const (
	literal entry = 1 << 31
	special entry = 1 << 15 // end, second, or neither: see kind
	second  entry = 1 << 14 // the table that continues: its start at 16, bits of its index at 8
	end     entry = 1 << 13 // of the block
	// kind masks the flags. An entry with special alone stands for bits that are no code, or a reserved symbol.
	kind = literal | special | second | end

	takes    = 63 // mask of what an entry takes
	codeBits = 63 // mask of the bits of the code, at 8
)

const (
	maxCode    = 15 // bits (RFC 1951 section 3.2.7)
	litBits    = 11
	distBits   = 9
	maxLits    = 288
	maxDists   = 32
	litEntries = 1<<litBits + 1<<litBits // more than a complete code of 288 symbols can take: see TestTableSize
	dstEntries = 1<<distBits + 1<<distBits
	endOfBlock = 256
)

// lengthBase and lengthExtra are the lengths of symbols from 257 (RFC 1951 section 3.2.5).
var (
	lengthBase = [29]uint16{
		3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
	}
	lengthExtra = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase    = [30]uint16{
		1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
		8193, 12289, 16385, 24577,
	}
	distExtra = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// What a table has for the symbols of a code, but for the number of bits, which is added (both as what an entry takes, and as
// the bits of the code).
var litSymbols, distSymbols, orderSymbols = func() (lits [maxLits]entry, dists [maxDists]entry, order [19]entry) {
	for i := range lits {
		switch {
		case i < endOfBlock:
			lits[i] = literal | entry(i)<<16
		case i == endOfBlock:
			lits[i] = special | end
		case i-257 < len(lengthBase):
			lits[i] = entry(lengthBase[i-257])<<16 | entry(lengthExtra[i-257])
		default:
			lits[i] = special // no length
		}
	}
	for i := range dists {
		dists[i] = special
		if i < len(distBase) {
			dists[i] = entry(distBase[i])<<16 | entry(distExtra[i])
		}
	}
	for i := range order {
		order[i] = literal | entry(i)<<16
	}
	return lits, dists, order
}()

// withBits adds the number of bits to what stands for a symbol.
func withBits(symbol entry, n uint) entry { return symbol + entry(n)*0x101 }

// build makes the table of a code from the lengths of its symbols (RFC 1951 section 3.2.2). Like zlib and Go, it
// refuses a code that lacks some combinations of bits, except that there may be no symbol at all, or one with one bit.
func build(table []entry, index uint, lengths []uint8, symbols []entry) bool {
	var count, next [maxCode + 2]uint16
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	longest, sum := uint(0), 0
	for n := uint(1); n <= maxCode; n++ {
		next[n+1] = next[n] + count[n]
		sum = sum<<1 + int(count[n])
		if count[n] > 0 {
			longest = n
		}
		if sum > 1<<n {
			return false
		}
	}
	if sum != 1<<maxCode {
		if longest > 1 {
			return false
		}
		for i := range table[:1<<index] {
			table[i] = special
		}
		if longest == 0 {
			return true
		}
	}
	var sorted [maxLits]uint16 // symbols by the length of their codes
	for symbol, n := range lengths {
		if n > 0 {
			sorted[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	// A code as it stands in the stream, whose bits come from the lowest. What has been filled is doubled for each bit.
	code, at := uint32(0), 0
	for n := uint(1); n <= index; n++ {
		if n > 1 || longest > 1 || count[1] > 1 {
			copy(table[1<<(n-1):1<<n], table[:1<<(n-1)])
		}
		for range count[n] {
			table[code] = withBits(symbols[sorted[at]], n)
			code = after(code, n)
			at++
		}
	}
	if longest == 1 && count[1] == 1 {
		for i := uint32(0); i < 1<<index; i += 2 {
			table[i] = table[0]
		}
	}
	if longest <= index {
		return true
	}
	return long(table, index, code, sorted[at:next[maxCode]], lengths, symbols)
}

// after is the code of n bits behind another one, both as they stand in the stream.
func after(code uint32, n uint) uint32 {
	bit := uint32(1) << (n - 1)
	for code&bit != 0 {
		code ^= bit
		bit >>= 1
	}
	return code | bit
}

// long makes the second tables, of codes that are longer than the index. They come in ascending order, so those with
// the same first bits follow each other, and the last of them is the longest.
func long(table []entry, index uint, code uint32, sorted []uint16, lengths []uint8, symbols []entry) bool {
	type place struct {
		code uint32
		n    uint
	}
	var places [maxLits]place
	for i, symbol := range sorted {
		n := uint(lengths[symbol])
		places[i] = place{code, n}
		code = after(code, n)
	}
	head := uint32(1)<<index - 1
	start := 1 << index
	for i := 0; i < len(sorted); {
		same := i + 1
		for same < len(sorted) && places[same].code&head == places[i].code&head {
			same++
		}
		size := places[same-1].n - index
		if start+1<<size > len(table) {
			return false
		}
		table[places[i].code&head] = special | second | entry(start)<<16 | entry(size)<<8 | entry(index)
		part := table[start : start+1<<size]
		for ; i < same; i++ {
			p := places[i]
			e := withBits(symbols[sorted[i]], p.n-index)
			for j := p.code >> index; j < 1<<size; j += 1 << (p.n - index) {
				part[j] = e
			}
		}
		start += 1 << size
	}
	return true
}
