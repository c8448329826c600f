/* In place of the frame of `spill report --html`, which is 200 KiB. */
#include "report.h"

const char cli_page_before[] = "<script>", cli_page_after[] = "</script>";
