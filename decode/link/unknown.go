package link

import "strconv"

// Layer is a header that names what follows it.
type Layer uint8

// Layers whose next header Decode may not follow.
const (
	NoLayer     Layer = iota
	LinkLayer         // the capture: Value is a link type
	EtherLayer        // Value is an EtherType; below 0x600 an 802.3 frame
	IPLayer           // Value is an IP protocol
	GRELayer          // Value is an EtherType
	PPPLayer          // Value is a PPP protocol
	NextLayer         // VXLAN-GPE and NSH: Value is their next protocol
	LRHLayer          // Value is the LNH field of native InfiniBand
	ERFLayer          // Value is a record type
	FamilyLayer       // loopback and NFLOG headers: Value is an address family
	TZSPLayer         // Value is the encapsulated protocol
	MACsecLayer       // Value is the TCI: the frame is encrypted or changed
	ERSPANLayer       // Value is the frame type
	UDPLayer          // Value is the destination port
)

// Unknown is where Decode stopped because it does not know what follows, or need not: Value is what Layer
// announced. It is the zero value if a Frame has a Proto or a Problem.
type Unknown struct {
	Layer Layer
	Value uint32
}

// unknown ends the decoding at data, of which n bytes were on the wire.
func (f *Frame) unknown(l Layer, value uint32, data []byte, n int) (header, []byte, int) {
	f.Unknown, f.Payload, f.PayloadLen = Unknown{l, value}, data[:len(data):len(data)], n
	return nil, nil, 0
}

// String names it: "ARP", "ESP", "EtherType 0x9999", "link type 105 (IEEE802_11)".
func (u Unknown) String() string {
	switch u.Layer {
	case EtherLayer, GRELayer:
		if u.Value < 0x600 {
			return "802.3 frame"
		}
		return named(etherNames[uint16(u.Value)], "EtherType 0x", uint64(u.Value), 16)
	case IPLayer:
		return named(protocolNames[uint8(u.Value)], "IP protocol ", uint64(u.Value), 10)
	case LinkLayer:
		s := "link type " + strconv.Itoa(int(u.Value))
		if name := linkNames[u.Value]; name != "" {
			s += " (" + name + ")"
		}
		return s
	case PPPLayer:
		return named(pppNames[uint16(u.Value)], "PPP protocol 0x", uint64(u.Value), 16)
	case NextLayer:
		return "next protocol " + strconv.Itoa(int(u.Value)) + " of VXLAN-GPE or NSH"
	case LRHLayer:
		return "InfiniBand without a transport header"
	case ERFLayer:
		return "ERF record type " + strconv.Itoa(int(u.Value))
	case FamilyLayer:
		return "address family " + strconv.Itoa(int(u.Value))
	case TZSPLayer:
		return "TZSP protocol " + strconv.Itoa(int(u.Value))
	case MACsecLayer:
		return "encrypted MACsec"
	case UDPLayer:
		return "UDP port " + strconv.Itoa(int(u.Value))
	case ERSPANLayer:
		return "ERSPAN frame type " + strconv.Itoa(int(u.Value))
	}
	return ""
}

// Named reports whether String has a name for it, and no more than a number.
func (u Unknown) Named() bool {
	switch u.Layer {
	case EtherLayer, GRELayer:
		return etherNames[uint16(u.Value)] != ""
	case IPLayer:
		return protocolNames[uint8(u.Value)] != ""
	case PPPLayer:
		return pppNames[uint16(u.Value)] != ""
	case LRHLayer, MACsecLayer:
		return true
	}
	return false
}

// Kind is u without a value that its name does not show, such as the length of an 802.3 frame: what has one name is of one kind.
func (u Unknown) Kind() Unknown {
	switch {
	case (u.Layer == EtherLayer || u.Layer == GRELayer) && u.Value < 0x600:
		return Unknown{Layer: EtherLayer}
	case u.Layer == LRHLayer, u.Layer == MACsecLayer:
		u.Value = 0
	}
	return u
}

func named(name, prefix string, value uint64, base int) string {
	if name != "" {
		return name
	}
	return prefix + strconv.FormatUint(value, base)
}

// etherNames are EtherTypes that share a network with those of interest (IEEE 802 registry).
var etherNames = map[uint16]string{
	0x0806: "ARP", 0x0842: "Wake-on-LAN", 0x2000: "CDP", 0x22e7: "CN-TAG", 0x22ea: "SRP", 0x22f0: "AVTP",
	0x6003: "DECnet", 0x6004: "DEC LAT", 0x8035: "RARP", 0x809b: "AppleTalk", 0x80f3: "AARP",
	0x8137: "IPX", 0x86dd: "IPv6", 0x0800: "IPv4", 0x8808: "Ethernet flow control", 0x8809: "slow protocols (LACP)",
	0x8863: "PPPoE discovery", 0x8870: "jumbo LLC", 0x887b: "HomePlug", 0x888e: "EAPOL", 0x8892: "PROFINET",
	0x88a2: "ATA over Ethernet", 0x88a4: "EtherCAT", 0x88b5: "local experimental EtherType", 0x88b7: "OUI extended EtherType",
	0x88b8: "GOOSE", 0x88cc: "LLDP", 0x88f5: "MVRP", 0x88f7: "PTP", 0x88f8: "NC-SI", 0x8902: "CFM", 0x8906: "FCoE",
	0x890d: "802.11 fast roaming", 0x8914: "FIP", 0x9000: "Ethernet loopback test", 0x9998: "batman",
	0x4305: "batman-adv", 0xcafe: "Veritas LLT", 0xd28b: "header of Arista",
}

// protocolNames are the IP protocols that Decode does not follow (IANA registry).
var protocolNames = map[uint8]string{
	1: "ICMP", 2: "IGMP", 8: "EGP", 9: "IGP", 27: "BTH in plain IP", 33: "DCCP", 46: "RSVP", 50: "ESP", 51: "AH", 58: "ICMPv6",
	59: "IPv6 without next header", 88: "EIGRP", 89: "OSPF", 98: "ENCAP", 103: "PIM", 108: "IPComp",
	112: "VRRP", 115: "L2TP", 124: "IS-IS", 132: "SCTP", 133: "FC", 136: "UDP-Lite", 137: "MPLS in IP", 139: "HIP", 140: "Shim6",
}

var pppNames = map[uint16]string{
	0x002b: "PPP IPX", 0x003d: "PPP multilink", 0x00fd: "PPP compressed", 0x8021: "PPP IPCP", 0x8057: "PPP IPv6CP", 0x80fd: "PPP CCP",
	0xc021: "PPP LCP", 0xc023: "PPP PAP", 0xc025: "PPP LQR", 0xc223: "PPP CHAP",
}

// linkNames are the link types of the pcap registry that network captures are most likely to have and that
// Decode does not support.
var linkNames = map[uint32]string{
	3: "AX25", 6: "IEEE802_5", 7: "ARCNET_BSD", 8: "SLIP", 10: "FDDI", 100: "ATM_RFC1483", 105: "IEEE802_11", 107: "FRELAY",
	117: "PFLOG", 119: "IEEE802_11_PRISM", 122: "IP_OVER_FC", 123: "SUNATM", 127: "IEEE802_11_RADIOTAP", 129: "ARCNET_LINUX",
	138: "APPLE_IP_OVER_IEEE1394", 143: "DOCSIS", 144: "LINUX_IRDA", 147: "USER0", 148: "USER1", 149: "USER2", 150: "USER3",
	151: "USER4", 152: "USER5", 153: "USER6", 154: "USER7", 155: "USER8", 156: "USER9", 157: "USER10", 158: "USER11",
	159: "USER12", 160: "USER13", 161: "USER14", 162: "USER15", 163: "IEEE802_11_AVS", 187: "BLUETOOTH_HCI_H4",
	189: "USB_LINUX", 190: "CAN20B", 195: "IEEE802_15_4_WITHFCS", 201: "BLUETOOTH_HCI_H4_WITH_PHDR", 220: "USB_LINUX_MMAPPED",
	224: "FC_2", 225: "FC_2_WITH_FRAME_DELIMS", 226: "IPNET", 227: "CAN_SOCKETCAN", 231: "DBUS", 240: "NETANALYZER",
	241: "NETANALYZER_TRANSPARENT", 244: "MPEG_2_TS", 246: "NFC_LLCP", 248: "SCTP", 249: "USBPCAP", 251: "BLUETOOTH_LE_LL",
	252: "WIRESHARK_UPPER_PDU", 253: "NETLINK", 254: "BLUETOOTH_LINUX_MONITOR", 258: "PKTAP", 259: "EPON", 261: "ZWAVE_R1_R2",
	264: "ISO_14443", 268: "USB_DARWIN", 271: "VSOCK", 277: "OPENVIZSLA", 280: "DSA_TAG_BRCM", 285: "DSA_TAG_DSA", 289: "USB_2_0",
	290: "ATSC_ALP", 291: "ETW",
}
