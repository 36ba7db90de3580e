// Package pcapfilter compiles filter expressions, of the language of tcpdump in the main, to programs for the
// packet filter of the Linux kernel.
//
//	udp port 4791 and (host 192.0.2.1 or net fd00::/64)
//
// Programs differ from those of tcpdump in two ways. They look through VLAN tags and IPv6 extension headers:
// "udp" holds for a tagged datagram too, and "vlan 5" tests the outermost tag, without changing what stands
// after it. And they know that the kernel strips the outermost tag of a frame before a filter sees it.
//
// The expression may hold
//
//	ip, ip6, arp, rarp, roce, tcp, udp, sctp, icmp, icmp6, igmp
//	[src|dst] host ADDRESS, [src|dst] net ADDRESS[/BITS]
//	[tcp|udp|sctp] [src|dst] port PORT, portrange FIRST-LAST
//	ether [src|dst] host MAC, ether proto N, ip proto N, ip6 proto N
//	broadcast, multicast, vlan [ID], fragment, less N, greater N
//	comparisons of len, of numbers and of bytes: tcp[13] & 2 != 0, udp[4:2] > 100
//	and (&&), or (||), not (!), parentheses
//
// As in tcpdump, words that tell the kind of an address or port hold on for those that follow without: port
// 111 or 2049. Names of hosts are not looked up. roce is ether proto 0x8915; fragment holds for IP fragments
// but the first, which name no port.
package pcapfilter
