package roce

import (
	"fmt"
	"strings"
	"testing"
)

// The opcode table of IBTA volume 1 (table "OpCode field"), written out once
// more and in another form: services that have the operation, and the
// extension headers for RC.
const opcodeTable = `
00 Send First|RC UC RD XRC|
01 Send Middle|RC UC RD XRC|
02 Send Last|RC UC RD XRC|
03 Send Last Immediate|RC UC RD XRC|ImmDt
04 Send Only|RC UC RD UD XRC|
05 Send Only Immediate|RC UC RD UD XRC|ImmDt
06 RDMA Write First|RC UC RD XRC|RETH
07 RDMA Write Middle|RC UC RD XRC|
08 RDMA Write Last|RC UC RD XRC|
09 RDMA Write Last Immediate|RC UC RD XRC|ImmDt
0a RDMA Write Only|RC UC RD XRC|RETH
0b RDMA Write Only Immediate|RC UC RD XRC|RETH ImmDt
0c RDMA Read Request|RC RD XRC|RETH
0d RDMA Read Response First|RC RD XRC|AETH
0e RDMA Read Response Middle|RC RD XRC|
0f RDMA Read Response Last|RC RD XRC|AETH
10 RDMA Read Response Only|RC RD XRC|AETH
11 Acknowledge|RC RD XRC|AETH
12 Atomic Acknowledge|RC RD XRC|AETH AtomicAckETH
13 Compare Swap|RC RD XRC|AtomicETH
14 Fetch Add|RC RD XRC|AtomicETH
15 Resync|RD|
16 Send Last Invalidate|RC XRC|IETH
17 Send Only Invalidate|RC XRC|IETH
1c Flush|RC RD XRC|FETH RETH
1d Atomic Write|RC RD XRC|RETH`

var testHeaders = map[string]struct {
	bit  Headers
	size int
}{
	"RETH": {HasRETH, 16}, "AETH": {HasAETH, 4}, "ImmDt": {HasImmDt, 4}, "IETH": {HasIETH, 4},
	"AtomicETH": {HasAtomicETH, 28}, "AtomicAckETH": {HasAtomicAckETH, 8}, "FETH": {HasFETH, 4},
	"DETH": {HasDETH, 8}, "RDETH": {HasRDETH, 4}, "XRCETH": {HasXRCETH, 4},
}

func TestOpcodeTable(t *testing.T) {
	prefix := map[string]Opcode{"RC": 0, "UC": 0x20, "RD": 0x40, "UD": 0x60, "XRC": 0xa0}
	defined := map[Opcode]bool{CNP: true, CNPInfiniBand: true}
	for line := range strings.Lines(strings.TrimSpace(opcodeTable)) {
		field := strings.Split(strings.TrimSpace(line), "|")
		code, name, _ := strings.Cut(field[0], " ")
		var low Opcode
		if _, err := fmt.Sscanf(code, "%x", &low); err != nil {
			t.Fatal(err)
		}
		for _, service := range strings.Fields(field[1]) {
			op := prefix[service] + low
			defined[op] = true
			names := strings.Fields(field[2])
			response := low >= 0x0d && low <= 0x12
			switch {
			case service == "UD":
				names = append(names, "DETH")
			case service == "XRC" && !response:
				names = append(names, "XRCETH")
			case service == "RD" && response:
				names = append(names, "RDETH")
			case service == "RD":
				names = append(names, "RDETH", "DETH")
			}
			var headers Headers
			size := 12
			for _, n := range names {
				headers |= testHeaders[n].bit
				size += testHeaders[n].size
			}
			if got := op.String(); got != service+" "+name {
				t.Errorf("%#x is called %q, want %q", uint8(op), got, service+" "+name)
			}
			if op.Headers() != headers || op.HeaderSize() != size || op.Headers().Size() != size-12 {
				t.Errorf("%s has headers %b of %d bytes, want %b of %d", op, op.Headers(), op.HeaderSize(), headers, size)
			}
			if op.Service().String() != service || op.Operation() != low || op.Service().Opcode(low) != op {
				t.Errorf("%s: service %s, operation %#x", op, op.Service(), uint8(op.Operation()))
			}
			has := func(s string) bool { return strings.Contains(name, s) }
			only := has("Only") || !has("First") && !has("Middle") && !has("Last")
			for _, c := range []struct {
				what      string
				got, want bool
			}{
				{"IsDefined", op.IsDefined(), true},
				{"IsManufacturer", op.IsManufacturer(), false},
				{"IsSend", op.IsSend(), has("Send")},
				{"IsWrite", op.IsWrite(), has("RDMA Write")},
				{"IsReadRequest", op.IsReadRequest(), has("Read Request")},
				{"IsReadResponse", op.IsReadResponse(), has("Read Response")},
				{"IsAcknowledge", op.IsAcknowledge(), has("Acknowledge")},
				{"IsAtomic", op.IsAtomic(), has("Atomic") || has("Compare") || has("Fetch")},
				{"IsFlush", op.IsFlush(), has("Flush")},
				{"IsCNP", op.IsCNP(), false},
				{"IsResponse", op.IsResponse(), response},
				{"IsFirst", op.IsFirst(), has("First")},
				{"IsMiddle", op.IsMiddle(), has("Middle")},
				{"IsLast", op.IsLast(), has("Last")},
				{"IsOnly", op.IsOnly(), only},
				{"Starts", op.Starts(), has("First") || only},
				{"Ends", op.Ends(), has("Last") || only},
				{"HasRETH", op.HasRETH(), headers&HasRETH != 0},
				{"HasAETH", op.HasAETH(), headers&HasAETH != 0},
				{"HasImmediate", op.HasImmediate(), has("Immediate")},
				{"HasInvalidate", op.HasInvalidate(), has("Invalidate")},
				{"HasDETH", op.HasDETH(), headers&HasDETH != 0},
			} {
				if c.got != c.want {
					t.Errorf("%s: %s is %v", op, c.what, c.got)
				}
			}
		}
	}
	seen := map[string]Opcode{}
	for i := range 256 {
		op := Opcode(i)
		if op.IsDefined() != defined[op] {
			t.Errorf("%#x: defined is %v", i, op.IsDefined())
		}
		if op.IsManufacturer() != (i >= 0xc0) {
			t.Errorf("%#x: manufacturer is %v", i, op.IsManufacturer())
		}
		if !defined[op] && (op.HeaderSize() != 12 || op.Headers() != 0) {
			t.Errorf("%#x has headers %b", i, op.Headers())
		}
		if other, ok := seen[op.String()]; ok && !op.IsCNP() {
			t.Errorf("%#x and %#x are both called %q", i, uint8(other), op)
		}
		seen[op.String()] = op
	}
	for op, name := range map[Opcode]string{
		0x18: "RC Reserved 0x18", 0x2c: "UC Reserved 0x2c", 0x60: "UD Reserved 0x60",
		0x80: "CNP", 0x81: "CNP", 0x82: "Reserved 0x82", 0xc0: "Manufacturer 0xc0", 0xff: "Manufacturer 0xff",
	} {
		if op.String() != name {
			t.Errorf("%#x is called %q, want %q", uint8(op), op, name)
		}
	}
}

func TestOpcodeConstants(t *testing.T) {
	for op, code := range map[Opcode]uint8{
		RCSendOnly: 0x04, RCWriteFirst: 0x06, RCReadRequest: 0x0c, RCReadResponseMiddle: 0x0e,
		RCAcknowledge: 0x11, RCFetchAdd: 0x14, RCSendOnlyInvalidate: 0x17, RCFlush: 0x1c, RCAtomicWrite: 0x1d,
		ServiceXRC.Opcode(RCSendLastInvalidate): 0xb6, UDSendOnlyImmediate: 0x65,
	} {
		if uint8(op) != code {
			t.Errorf("%s is %#x, want %#x", op, uint8(op), code)
		}
	}
}

func TestOpcodeStringAllocs(t *testing.T) {
	if n := minAllocs(func() { _ = Opcode(0x99).String() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
