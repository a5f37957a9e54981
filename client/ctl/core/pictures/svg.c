/* The one look of all pictures: kinds as hatches, tensors as colours, both for light and dark, and a legend of
 * what occurs. Knows nothing of layouts. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"

enum {
	SVG_WIDTH_LEAST = 640,
	SVG_COLOURS = 30,
	SVG_TOOLTIP_BYTES = 512,
	SVG_SUBTITLE = 16,
	SVG_STROKED = 4 /* lower boxes would be all outline */
};

/* In the order of the legend. */
static const struct {
	unsigned bit;
	const char *name;
} kinds[] = {
	{NPUMEM_BYTE_DATA, "data"},	  {SVG_LENT, "data in another's empty block"},
	{NPUMEM_BYTE_DUMMY, "dummy"},	  {NPUMEM_BYTE_PADDING, "padding"},
	{NPUMEM_BYTE_EMPTY, "empty"},	  {SVG_NOTHING, "none of the tensor on this NPU"},
	{SVG_USED, "after its last use"}, {SVG_FREE, "free"},
	{SVG_SEALED, "sealed"},		  {SVG_DAMAGED, "damaged"},
	{SVG_UNWRITTEN, "never written"}, {SVG_BLOCK, "block of 4 bytes"},
	{SVG_ADDRESS, "address"},
};
enum { SVG_N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Hatches are strokes of patterns; each kind has its own direction, so that they differ without colours, too. */
static const char patterns[] =
	"<defs>\n"
	"<pattern id=\"empty\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path class=\"h\" "
	"d=\"M0 8L8 0\"/></pattern>\n"
	"<pattern id=\"padding\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\"><rect class=\"g\" "
	"width=\"4\" height=\"4\"/><path class=\"h\" d=\"M0 0L4 4\"/></pattern>\n"
	"<pattern id=\"dummy\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect class=\"o\" "
	"width=\"5\" height=\"5\"/><path class=\"p\" d=\"M0 0L5 5M0 5L5 0\"/></pattern>\n"
	"<pattern id=\"lent\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"v\" "
	"d=\"M1.5 0V6\"/></pattern>\n"
	"<pattern id=\"used\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"v\" "
	"d=\"M0 3H6\"/></pattern>\n"
	"</defs>\n";

static const char styles[] =
	"text{fill:#1f2328}.b{fill:#fff}.t{font-size:15px;font-weight:bold}.s,.r{fill:#59636e}.r{text-anchor:end}"
	".m{text-anchor:middle}.c{text-anchor:middle;font-size:9px}.l{stroke:#818b98;stroke-width:.7;fill:none}"
	".h{stroke:#9aa4af;stroke-width:.7}.g{fill:#eceff2}.o{fill:#ffe2a8}.p{stroke:#b07d18;stroke-width:.7}"
	".v{stroke:#1f2328;stroke-width:1.1;stroke-opacity:.55}\n"
	".k{stroke:#6e7781;stroke-width:.6}.z{stroke-width:0}.k8{fill:#a9cdf2}.k4{fill:url(#dummy)}.k2{fill:url(#"
	"padding)}"
	".k1{fill:url(#empty)}.k16,.k64{fill:none;stroke-dasharray:2 2;pointer-events:all}"
	".k2048{fill:none;stroke:#c4cad1;pointer-events:all}.k4096{fill:#a9cdf2}"
	".q{pointer-events:none}.k32{fill:url(#lent)}.k1024{fill:url(#used)}\n"
	".i{fill:none;stroke:#1f2328;stroke-width:1.4}.j{fill:#1f2328}.d{fill:#cf222e}.w{fill:#fff}\n"
	"@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.s,.r{fill:#9198a1}"
	".l{stroke:#656c76}.h{stroke:#6a737d}.g{fill:#21262d}.o{fill:#5a4310}.p{stroke:#d9a441}.v{stroke:#f0f6fc}"
	".k{stroke:#848d97}.k8,.k4096{fill:#1f4e80}.k2048{stroke:#3d444d}.i{stroke:#e6edf3}.j{fill:#e6edf3}.d{"
	"fill:#ff7b72}.w{fill:#0d1117}"
	"}\n";

const char *svg_kind_name(unsigned kind)
{
	for (unsigned i = 0; i < SVG_N_KINDS; i++)
		if (kinds[i].bit == kind)
			return kinds[i].name;
	return "";
}

unsigned svg_strongest(unsigned bits)
{
	for (unsigned bit = NPUMEM_BYTE_DATA; bit; bit /= 2)
		if (bits & bit)
			return bit;
	return 0;
}

/* FNV-1a, its bits mixed once more: any hash would do, but never another one, or colours change from version to
 * version. */
int svg_colour(const char *name)
{
	uint32_t hash = 2166136261U;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619U;
	hash = (hash ^ hash >> 16) * 0x85ebca6bU;
	return (int)((hash ^ hash >> 13) % SVG_COLOURS);
}

const char *svg_bytes(int64_t bytes, char *text)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;
	double value = (double)bytes;
	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(text, SVG_BYTES_TEXT, "%.4g %s", value, units[unit]);
	return text;
}

static void svg_escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else
			fputc((unsigned char)*text < ' ' ? '?' : *text, out);
	}
}

static void svg_reach(struct svg *svg, double x, double y)
{
	svg->width = x > svg->width ? x : svg->width;
	svg->height = y > svg->height ? y : svg->height;
}

void svg_text(struct svg *svg, double x, double y, const char *style, const char *text)
{
	double wide = (*style == 't' ? 8.6 : 6.2) * (double)strlen(text);
	fprintf(svg->body, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
	svg_escape(svg->body, text);
	fputs("</text>\n", svg->body);
	svg_reach(svg, *style == 'r' ? x : *style == 'm' || *style == 'c' ? x + wide / 2 : x + wide, y + 4);
}

static void svg_tooltip(struct svg *svg, const char *format, va_list values)
{
	char text[SVG_TOOLTIP_BYTES];
	vsnprintf(text, sizeof(text), format, values);
	fputs("<title>", svg->body);
	svg_escape(svg->body, text);
	fputs("</title>", svg->body);
}

void svg_rect(struct svg *svg, double x, double y, double width, double height, unsigned kind, int colour,
	      const char *format, ...)
{
	char own[16] = "";
	va_list values;
	bool over = kind == SVG_LENT || kind == SVG_USED;
	if (colour >= 0)
		snprintf(own, sizeof(own), " c%d", colour);
	svg->colours |= colour >= 0 ? 1U << colour : 0;
	svg->kinds |= kind;
	fprintf(svg->body, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"k k%u%s%s\">", x, y,
		width, height, over ? NPUMEM_BYTE_DATA : kind, own, height < SVG_STROKED ? " z" : "");
	va_start(values, format);
	svg_tooltip(svg, format, values);
	va_end(values);
	fputs("</rect>\n", svg->body);
	if (over)
		fprintf(svg->body,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"q k%u\"/>\n", x, y,
			width, height, kind);
	svg_reach(svg, x + width, y + height);
}

void svg_frame(struct svg *svg, double x, double y, double width, double height)
{
	fprintf(svg->body,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#d3212c\" "
		"stroke-width=\"2\" class=\"q\"/>\n",
		x, y, width, height);
}

void svg_line(struct svg *svg, double x, double y, double to_x, double to_y)
{
	fprintf(svg->body, "<path class=\"l\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x, y, to_x, to_y);
}

void svg_offset(struct svg *svg, double y, int64_t offset)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, offset);
	svg_text(svg, SVG_LEFT - 8, y, "r", text);
}

/* A padlock, a triangle with an exclamation mark, a dashed circle. */
static void svg_mark(struct svg *svg, double x, double y, unsigned kind)
{
	static const char *const shapes[] = {
		"<rect class=\"j\" x=\"2\" y=\"7\" width=\"10\" height=\"7\"/><path class=\"i\" "
		"d=\"M4 7V4.5a3 3 0 0 1 6 0V7\"/>",
		"<path class=\"d\" d=\"M7 1L14 14H0Z\"/><path class=\"w\" d=\"M6.2 5h1.6v4.5H6.2zM6.2 "
		"11h1.6v1.6H6.2z\"/>",
		"<circle class=\"i\" cx=\"7\" cy=\"8\" r=\"5\" stroke-dasharray=\"2.6 1.6\"/>",
	};
	unsigned i = kind == SVG_SEALED ? 0 : kind == SVG_DAMAGED ? 1 : 2;
	svg->kinds |= kind;
	fprintf(svg->body, "<g transform=\"translate(%.1f %.1f)\"><title>%s</title>%s</g>\n", x, y,
		svg_kind_name(kind), shapes[i]);
	svg_reach(svg, x + 16, y + 16);
}

double svg_marks(struct svg *svg, double x, double y, const struct npumem_tensor *tensor)
{
	bool unwritten = !strcmp(tensor->state, "unwritten") || !strcmp(tensor->state, "partly written");
	const struct {
		bool is;
		unsigned kind;
	} marks[] = {{tensor->sealed, SVG_SEALED},
		     {!strcmp(tensor->state, "damaged") || tensor->damaged_bytes > 0, SVG_DAMAGED},
		     {unwritten || tensor->unwritten_bytes > 0, SVG_UNWRITTEN}};
	for (unsigned i = 0; i < 3; i++)
		if (marks[i].is) {
			svg_mark(svg, x, y, marks[i].kind);
			x += 18;
		}
	return x;
}

void svg_begin(struct svg *svg, FILE *out, const char *title)
{
	*svg = (struct svg){.out = out, .width = SVG_WIDTH_LEAST - SVG_SUBTITLE};
	svg->body = open_memstream(&svg->text, &svg->bytes);
	if (!svg->body)
		memory_none();
	svg_text(svg, SVG_SUBTITLE, 24, "t", title);
}

void svg_subtitle(struct svg *svg, unsigned line, const char *text)
{
	svg_text(svg, SVG_SUBTITLE, 42 + 16 * (double)line, "s", text);
}

static void svg_legend(struct svg *svg)
{
	double x = SVG_LEFT, y = svg->height + 16, most = svg->width;
	for (unsigned i = 0; i < SVG_N_KINDS; i++) {
		unsigned kind = kinds[i].bit;
		double wide = 44 + 6.6 * (double)strlen(kinds[i].name); /* of wide fonts */
		if (!(svg->kinds & kind))
			continue;
		if (x + wide > most && x > SVG_LEFT) {
			x = SVG_LEFT;
			y += SVG_LINE + 4;
		}
		if (kind >= SVG_SEALED && kind <= SVG_UNWRITTEN)
			svg_mark(svg, x, y - 2, kind);
		else
			svg_rect(svg, x, y, 16, 12, kind, SVG_PLAIN, "%s", kinds[i].name);
		svg_text(svg, x + 22, y + 10, "s", kinds[i].name);
		x += wide;
	}
}

static void svg_styles(const struct svg *svg, FILE *out)
{
	fprintf(out, "<style>\n%s", styles);
	/* A pale and a strong tone of each hue: more hues could not be distinguished. */
	for (unsigned i = 0; i < SVG_COLOURS; i++)
		if (svg->colours >> i & 1)
			fprintf(out,
				".c%u{fill:hsl(%u,65%%,%u%%)}@media(prefers-color-scheme:dark){.c%u{fill:"
				"hsl(%u,45%%,%u%%)}}\n",
				i, i / 2 * 24, i % 2 ? 70 : 85, i, i / 2 * 24, i % 2 ? 29 : 20);
	fputs("</style>\n", out);
}

void svg_end(struct svg *svg)
{
	svg_legend(svg);
	double width = svg->width + SVG_SUBTITLE, height = svg->height + 12;
	if (ferror(svg->body) || fclose(svg->body))
		memory_none();
	fprintf(svg->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
		"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n",
		width, height, width, height);
	svg_styles(svg, svg->out);
	fputs(patterns, svg->out);
	fprintf(svg->out, "<rect class=\"b\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
	fwrite(svg->text, 1, svg->bytes, svg->out);
	fputs("</svg>\n", svg->out);
	free(svg->text);
}
