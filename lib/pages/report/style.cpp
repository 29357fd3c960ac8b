// SPDX-License-Identifier: Apache-2.0
#include "report/render.hpp"

namespace zs::report {

const char* const kStyle = R"css(
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:70rem;margin:0 auto;padding:1.5rem 1.25rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--grid)}
h3{font-size:1rem;margin:1.6rem 0 .4rem}
p,li{overflow-wrap:anywhere}
ul{padding-left:1.25rem}li{margin:.3rem 0}
code{font:.88em ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
.verdict{border-left:.4rem solid var(--quiet);background:var(--tint);padding:.9rem 1.1rem;border-radius:.25rem;margin:0 0 1rem}
.verdict p{margin:0;font-size:1.06rem}
.verdict .label{display:inline-block;font-weight:700;margin-bottom:.35rem}
.verdict.good{border-color:var(--good)}.verdict.good .label{color:var(--good)}
.verdict.bad{border-color:var(--bad)}.verdict.bad .label{color:var(--bad)}
span.bad{color:var(--bad);font-weight:600}
nav{font-size:.92rem;margin:0 0 1rem;display:flex;flex-wrap:wrap;gap:.2rem 1rem}
a{color:var(--link)}
td a,p a.from{color:inherit;text-decoration:underline dotted;text-underline-offset:.2em;text-decoration-color:var(--quiet)}
td a:hover,p a.from:hover{color:var(--link);text-decoration-style:solid}
.scroll{overflow-x:auto;margin:.8rem 0;-webkit-overflow-scrolling:touch}
.scroll.more{-webkit-mask-image:linear-gradient(to left,transparent,#000 3rem);mask-image:linear-gradient(to left,transparent,#000 3rem)}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .8rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
th{font-weight:600;vertical-align:bottom;border-bottom:2px solid var(--quiet)}
th.n,td.n{text-align:right}td,span.n{white-space:nowrap}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid var(--link);outline-offset:2px}
th button::after{content:"\2195";opacity:.35;margin-left:.15em;font-weight:400}
th[aria-sort=ascending] button::after{content:"\2191";opacity:1}
th[aria-sort=descending] button::after{content:"\2193";opacity:1}
tr:target{background:var(--tint);outline:2px solid var(--link)}
td.long{min-width:14rem;white-space:normal}td.long code{white-space:normal}
figure{margin:1rem 0;position:relative}
figcaption{color:var(--quiet);font-size:.88rem}
svg.figure{display:block;width:100%;height:auto;overflow:visible;font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
svg.narrow{display:none}
.row{display:grid;grid-template-columns:1fr 1fr;gap:0 2.5rem}
.row figure{margin:.6rem 0}.row figcaption{display:none}
svg .pointer rect{fill:transparent;stroke:none}svg .hair{stroke:var(--quiet);stroke-dasharray:3 3;visibility:hidden}
.tip{position:absolute;pointer-events:none;background:var(--paper);color:var(--ink);border:1px solid var(--quiet);border-radius:.3rem;padding:.4rem .6rem;font-size:.84rem;line-height:1.4;box-shadow:0 2px 8px #0003;display:none;white-space:nowrap;z-index:1;font-variant-numeric:tabular-nums}
.tip i{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.15em}
footer{margin-top:3rem;color:var(--quiet);font-size:.88rem}
details summary{cursor:pointer;margin:1rem 0 .4rem;font-weight:600}
@media(max-width:560px){
main{padding:1rem .9rem 3rem}h1{font-size:1.4rem}
svg.wide{display:none}svg.narrow{display:block}.row{display:block}
table{font-size:.86rem}th,td{padding-right:.6rem}
td:nth-child(2):last-child{min-width:0;white-space:normal;overflow-wrap:anywhere}td:has(+td:last-child):first-child{white-space:normal;overflow-wrap:break-word}
}
@media screen{td:not(.long) wbr{display:none}}
@media print{
body{font-size:10.5pt}main{max-width:none;padding:0}nav,.tip{display:none!important}
svg.wide{display:block}svg.narrow{display:none}
figure,tr,.verdict{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}.scroll.more{-webkit-mask-image:none;mask-image:none}.row{grid-template-columns:1fr 1fr}
table{font-size:8.5pt}th,td{padding-right:.4rem;white-space:normal;overflow-wrap:break-word}td.n{white-space:nowrap}td code{overflow-wrap:break-word}
details::details-content{content-visibility:visible}summary{list-style:none}
th button::after{content:none}a{color:inherit;text-decoration:none}
}
)css";

const char* const kScript = R"js(
(function(){
'use strict';
// Tables: a click on a heading sorts; numbers by their key, words as words; a third click gives the first order again.
document.querySelectorAll('table.sortable').forEach(function(table){
  var body=table.tBodies[0],first=Array.prototype.slice.call(body.rows);
  Array.prototype.forEach.call(table.tHead.rows[0].cells,function(head,column){
    var button=document.createElement('button');
    button.type='button';
    while(head.firstChild)button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener('click',function(){
      var now=head.getAttribute('aria-sort'),next=now==='ascending'?'descending':now==='descending'?null:'ascending';
      Array.prototype.forEach.call(table.tHead.rows[0].cells,function(other){other.removeAttribute('aria-sort')});
      var rows=first.slice();
      if(next){
        head.setAttribute('aria-sort',next);
        var sign=next==='ascending'?1:-1;
        var key=function(row){var cell=row.cells[column],k=cell.getAttribute('data-key');return k===null?cell.textContent:parseFloat(k)};
        rows.sort(function(a,b){
          var x=key(a),y=key(b),xn=typeof x==='number',yn=typeof y==='number';
          if(xn!==yn)return xn?-1:1;  // cells without a number come last either way
          return sign*(xn?x-y:x.localeCompare(y));
        });
      }
      rows.forEach(function(row){body.appendChild(row)});
    });
  });
});
// A table that continues beyond the edge fades there, until its end is visible.
document.querySelectorAll('.scroll').forEach(function(box){
  var mark=function(){box.classList.toggle('more',box.scrollLeft+box.clientWidth<box.scrollWidth-2)};
  box.addEventListener('scroll',mark);window.addEventListener('resize',mark);mark();
  var fold=box.closest('details');if(fold)fold.addEventListener('toggle',mark);
});
// A link into a closed list of origins opens it.
function open(){var at=location.hash&&document.getElementById(location.hash.slice(1)),box=at&&at.closest('details');if(box){box.open=true;at.scrollIntoView()}}
window.addEventListener('hashchange',open);open();
// Curves: the values at the step under the pointer.
document.querySelectorAll('figure').forEach(function(figure){
  var data=figure.querySelector('script[type="application/json"]');
  if(!data)return;
  var panels=JSON.parse(data.textContent),tip=document.createElement('div');
  tip.className='tip';figure.appendChild(tip);
  var at=function(curve,panel){return curve.same===undefined?curve:panel.series[curve.same]};
  var nearest=function(xs,x){  // xs ascend
    var low=0,high=xs.length-1;
    while(high-low>1){var middle=(low+high)>>1;if(xs[middle]<=x)low=middle;else high=middle}
    return Math.abs(xs[high]-x)<Math.abs(xs[low]-x)?high:low;
  };
  var row=function(colours,name,value){
    var line=document.createElement('div');
    colours.forEach(function(c){var mark=document.createElement('i');mark.style.background=c;line.appendChild(mark)});
    line.appendChild(document.createTextNode(' '+name+': '));
    var strong=document.createElement('b');strong.textContent=value;line.appendChild(strong);
    return line;
  };
  figure.querySelectorAll('.pointer').forEach(function(area){
    var panel=panels[+area.dataset.panel],svg=area.ownerSVGElement,hair=area.querySelector('.hair');
    var x0=+area.dataset.x0,x1=+area.dataset.x1,low=+area.dataset.low,high=+area.dataset.high,log=!!area.dataset.log;
    var hide=function(){tip.style.display='none';hair.style.visibility='hidden'};
    var show=function(event){
      var point=svg.createSVGPoint();point.x=event.clientX;point.y=event.clientY;
      var inside=point.matrixTransform(svg.getScreenCTM().inverse()),share=Math.min(1,Math.max(0,(inside.x-x0)/(x1-x0)));
      var x=log?low*Math.pow(high/low,share):low+share*(high-low),best=null;
      panel.series.forEach(function(curve){
        var xs=at(curve,panel).x;if(!xs.length)return;
        var near=xs[nearest(xs,x)];if(best===null||Math.abs(near-x)<Math.abs(best-x))best=near;
      });
      if(best===null)return hide();
      var groups=[];
      panel.series.forEach(function(curve){
        var of=at(curve,panel),i=of.x.length?nearest(of.x,best):-1;
        if(i<0||of.x[i]!==best)return;
        var value=of.y[i]===null?'not finite':String(of.y[i]),group=groups.find(function(g){return g.value===value});
        if(!group)groups.push(group={value:value,colours:[],names:[]});
        group.colours.push(curve.colour);group.names.push(curve.name);
      });
      tip.textContent='';
      var head=document.createElement('div');head.textContent=panel.x+' '+best;tip.appendChild(head);
      groups.forEach(function(g){tip.appendChild(row(g.colours,g.names.length>2?g.names.length+' conditions':g.names.join(' and '),g.value))});
      share=log?Math.log(best/low)/Math.log(high/low):(best-low)/(high-low||1);
      var xs=x0+share*(x1-x0);
      hair.setAttribute('transform','translate('+xs+' 0)');hair.style.visibility='visible';
      tip.style.display='block';
      var box=figure.getBoundingClientRect(),left=event.clientX-box.left+14;
      if(left+tip.offsetWidth>box.width)left=Math.max(0,event.clientX-box.left-tip.offsetWidth-14);
      tip.style.left=left+'px';tip.style.top=Math.max(0,event.clientY-box.top-tip.offsetHeight-10)+'px';
    };
    area.addEventListener('pointermove',show);area.addEventListener('pointerdown',show);area.addEventListener('pointerleave',hide);
  });
});
})();
)js";

}  // namespace zs::report
