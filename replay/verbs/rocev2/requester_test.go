package rocev2

import "testing"

// TestAckEvery has windows and path MTUs: whole datagrams where the window has room for several.
func TestAckEvery(t *testing.T) {
	for _, c := range []struct {
		mtu, window uint32
		offload     bool
		want        uint32
	}{
		{4096, 256, true, 60}, // 15 packets a datagram
		{4096, 1024, true, 60},
		{4096, 239, true, 45},
		{4096, 64, true, 15},
		{4096, 59, true, 14}, // less than a datagram
		{4096, 4, true, 1},
		{4096, 1, true, 1},
		{2048, 512, true, 124},  // 31
		{1024, 1024, true, 248}, // 62
		{256, 4096, true, 256},  // 64, the limit of the kernel
		{4096, 256, false, 16},
		{256, 4096, false, 16},
		{4096, 32, false, 8},
		{4096, 30, false, 4}, // of 7
		{4096, 1, false, 1},
	} {
		var conn Conn
		s := &socket{window: 1 << 20, readWindow: 1 << 20}
		conn.s, conn.mtu = s, c.mtu
		conn.requester.start(&conn, 0)
		conn.window = c.window
		if got := conn.ackEvery(c.offload); got != c.want {
			t.Errorf("path MTU %d, window %d, offload %v: %d, want %d", c.mtu, c.window, c.offload, got, c.want)
		}
	}
}
