package text

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/units"
)

// WrongICRCs says how many packets have a wrong ICRC, and why if one header field explains them; empty if there are none.
func WrongICRCs(st *decode.Stats) string {
	if st.BadICRC == 0 {
		return ""
	}
	s := fmt.Sprintf("%s with a wrong ICRC, of %d checked", units.Plural(st.BadICRC, "packet"), st.BadICRC+st.GoodICRC)
	f, x, ok := st.Misfits.Fits()
	if !ok {
		return s
	}
	which := fmt.Sprintf("%d of %d that were looked into", x.Packets, st.Misfits.Looked)
	if x.Packets == 1 && st.Misfits.Looked == 1 {
		which = "it"
	}
	if f.Masked() {
		return s + fmt.Sprintf("; for %s the sender took the %s (in packet %d: %s), which has to count as ones", which, f, x.Number, fieldValue(f, x.Was))
	}
	if a := st.Misfits.Requested; f == roce.FieldRequested {
		return s + fmt.Sprintf("; for %s the addresses that a REQ names in its private data would be right (from %s to %s in packet %d): a NAT changed them", which, a[0], a[1], x.Number)
	}
	return s + fmt.Sprintf("; for %s another %s would be right (in packet %d: %s, not %s): a switch, a NAT or the sender's adapter changed it",
		which, f, x.Number, fieldValue(f, x.Was), fieldValue(f, x.Now))
}

func fieldValue(f roce.Field, v uint32) string {
	switch f {
	case roce.FieldSource, roce.FieldDestination, roce.FieldAddress:
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, v))).String()
	case roce.FieldPort, roce.FieldLength, roce.FieldUDPLength, roce.FieldTTL:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("0x%04x", v)
}
